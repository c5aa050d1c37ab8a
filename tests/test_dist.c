// Tensor relations and execution on places: worked examples, random graphs under random cuts
// against the brute-force oracle, bytes against a count of elements, failing allocations.
//
//   test_dist [count] [seed] [case]     random graphs; default 400 1 and all cases
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_dist.h"
#include "oracle.h"
#include "check.h"
#include "util.h"
#include "random_graph.h"

// ---- tensor relations ---------------------------------------------------------------------------

static void test_relation_example(void) {
  static const double want[4][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}, {13, 14, 15, 16}};
  double u[4][4] = {{1, 2, 5, 6}, {3, 4, 7, 8}, {9, 10, 13, 14}, {11, 12, 15, 16}}, back[4][4];
  int64_t shape[2] = {4, 4}, two[2] = {2, 2}, four[2] = {4, 1}, key[2], origin[2];
  ein_ztensor v, b, out;
  ein_relation *r, *q;
  ein_relation_info info;
  memset(&v, 0, sizeof v);
  v.dtype = EIN_F64;
  v.rank = 2;
  v.shape = shape;
  v.data = u;
  out = v;
  out.data = back;
  CHECK(ein_relation_view(NULL, &v, two, &r) == EIN_OK);
  ein_relation_get(r, &info);
  CHECK(info.nblock == 4 && info.rank == 2 && info.nkey == 2 && info.dtype == EIN_F64);
  for (int n = 0; n < 4; n++) {  // (0,0) [[1,2],[3,4]], (0,1) [[5,6],[7,8]], ..
    key[0] = n / 2;
    key[1] = n % 2;
    CHECK(ein_relation_block(r, key, &b, origin) == EIN_OK);
    CHECK(b.shape[0] == 2 && b.shape[1] == 2 && origin[0] == 2 * key[0] && origin[1] == 2 * key[1]);
    CHECK((double *)b.data >= &u[0][0] && (double *)b.data < &u[0][0] + 16);  // no copy
    for (int64_t e = 0; e < 4; e++) {
      int64_t at[2];
      at[0] = e / 2;
      at[1] = e % 2;
      double *x = (double *)ein_view_at(&b, at);
      CHECK(x != NULL && *x == want[n][e]);
    }
  }
  key[0] = 2;
  CHECK(ein_relation_block(r, key, &b, NULL) == EIN_ERR_BOUNDS);
  CHECK(ein_relation_repartition(NULL, r, four, &q) == EIN_OK);
  key[0] = 3;
  key[1] = 0;
  CHECK(ein_relation_block(q, key, &b, origin) == EIN_OK && b.shape[1] == 4 && origin[0] == 3 &&
        memcmp(b.data, u[3], sizeof u[3]) == 0);
  CHECK(ein_relation_read(q, &out) == EIN_OK && memcmp(back, u, sizeof u) == 0);
  ein_relation_destroy(q);
  ein_relation_destroy(r);
  two[0] = 5;
  CHECK(ein_relation_view(NULL, &v, two, &r) == EIN_ERR_SHAPE && r == NULL);
  ein_relation_destroy(NULL);
}

// C[i,k] = sum of A[i,j]*B[j,k] under (i,k | j) = (2,2 | 4), and the same by a function.
static ein_status count_calls(void *user, const int64_t *origin, const int64_t *extent,
                              const ein_ztensor *in, const ein_ztensor *out) {
  long *calls = (long *)user;
  if (++*calls > 16) return EIN_ERR_INTERNAL;
  int64_t x[2], y[2], z[2];
  for (x[0] = 0; x[0] < extent[0]; x[0]++) {
    for (y[1] = 0; y[1] < extent[1]; y[1]++) {
      double sum = 0;
      for (x[1] = 0; x[1] < extent[2]; x[1]++) {
        y[0] = x[1];
        sum += *(double *)ein_view_at(&in[0], x) * *(double *)ein_view_at(&in[1], y);
      }
      z[0] = x[0];
      z[1] = y[1];
      *(double *)ein_view_at(out, z) = sum;
    }
  }
  return origin[0] % 4 == 0 ? EIN_OK : EIN_ERR_INTERNAL;
}

static void test_relation_product(void) {
  static const char text[] = "input A[8,8], B[8,8] : f64\nC[i,k] = sum[j](A[i,j]*B[j,k])\n";
  ein_program_desc d;
  ein_graph *g;
  double a[64], b[64], c[64], c2[64], want[64];
  memset(&d, 0, sizeof d);
  d.text = text;
  CHECK(ein_graph_parse(NULL, &d, &g) == EIN_OK);
  orc_random_fill(EIN_F64, 64, a, 1);
  orc_random_fill(EIN_F64, 64, b, 2);
  void *data[3];
  data[0] = a;
  data[1] = b;
  data[2] = want;
  orc_eval(g, data, NULL);
  int64_t pa[2] = {2, 4}, pb[2] = {4, 2}, cut[3] = {2, 2, 4};
  ein_ztensor va = dense(&g->tensor[0], a), vb = dense(&g->tensor[1], b);
  ein_relation *rel[2], *z, *sum;
  ein_relation_info info;
  CHECK(ein_relation_view(NULL, &va, pa, &rel[0]) == EIN_OK);
  CHECK(ein_relation_view(NULL, &vb, pb, &rel[1]) == EIN_OK);
  const ein_relation *both[2];
  both[0] = rel[0];
  both[1] = rel[1];
  for (int own = 0; own < 2; own++) {
    long calls = 0;
    ein_ztensor out = dense(&g->tensor[2], own ? c2 : c);
    CHECK(ein_relation_join(NULL, g, 0, cut, both, NULL, own ? count_calls : NULL, &calls, &z) ==
          EIN_OK);
    ein_relation_get(z, &info);
    CHECK(info.nkey == 3 && info.nblock == 16 && info.pieces[2] == 4 && (!own || calls == 16));
    CHECK(ein_relation_read(z, &out) == EIN_ERR_ARGUMENT);
    CHECK(ein_relation_aggregate(NULL, z, "sum", &sum) == EIN_OK);
    CHECK(ein_relation_read(sum, &out) == EIN_OK);
    CHECK(orc_compare(EIN_F64, 64, out.data, want, 8));
    ein_relation_destroy(sum);
    ein_relation_destroy(z);
  }
  long calls = 10;  // the function fails at a block
  CHECK(ein_relation_join(NULL, g, 0, cut, both, NULL, count_calls, &calls, &z) ==
            EIN_ERR_INTERNAL && z == NULL);
  ein_relation_destroy(rel[0]);
  ein_relation_destroy(rel[1]);
  ein_graph_destroy(g);
}

// Does the statement's output have its free indices as axes?
static int plain_output(const ein_graph *g, const eini_stmt *s) {
  if (g->tensor[s->out].rank != s->nfree || g->tensor[s->out].nstmt != 1) return 0;
  for (int r = 0; r < s->nfree; r++) {
    if (s->out_map.offset[r] != 0) return 0;
    for (int c = 0; c < s->nindex; c++)
      if (eini_map_coef(&s->out_map, r, c) != (r == c)) return 0;
  }
  return 1;
}

static void random_pieces(int rank, const int64_t *shape, int64_t *pieces) {
  for (int r = 0; r < rank; r++) pieces[r] = draw(1, eini_max64(eini_min64(shape[r], 4), 1));
}

// Joins a statement of a random graph with its operands in random partitions; the operands have the
// oracle's values.
static ein_status join_stmt(ein_ctx *ctx, const ein_graph *g, int k, const values *v, void *got) {
  const eini_stmt *s = &g->stmt[k];
  int64_t cut[MAX_INDEX], pieces[4];
  ein_relation *own[3] = {NULL, NULL, NULL}, *z = NULL, *sum = NULL;
  const ein_relation *rel[3];
  ein_ztensor out = dense(&g->tensor[s->out], got);
  ein_status st = EIN_OK;
  for (int i = 0; i < s->nindex; i++) {
    int64_t most = eini_max64(eini_min64(s->index[i].extent, 4), 1);
    cut[i] = draw(1, most);
  }
  for (int o = 0; o < s->noperand && st == EIN_OK; o++) {
    const eini_tensor *t = &g->tensor[s->operand[o]];
    ein_ztensor view = dense(t, v->data[s->operand[o]]);
    random_pieces(t->rank, t->shape, pieces);
    st = ein_relation_view(ctx, &view, pieces, &own[o]);
    rel[o] = own[o];
  }
  if (st == EIN_OK) st = ein_relation_join(ctx, g, k, cut, rel, NULL, NULL, NULL, &z);
  if (st == EIN_OK)
    st = ein_relation_aggregate(ctx, z, s->fold == EIN_FOLD_NONE ? "sum"
                                        : eini_fold_name(g, s->fold), &sum);
  ein_relation_info info;
  ein_relation_get(z, &info);
  if (st == EIN_OK && info.nkey == info.rank) st = ein_relation_read(z, &out);
  else if (st == EIN_OK) st = ein_relation_read(sum, &out);
  ein_relation_destroy(sum);
  ein_relation_destroy(z);
  for (int o = 0; o < 3; o++) ein_relation_destroy(own[o]);
  return st;
}

static void test_relation_random(int count, uint64_t seed) {
  int joined = 0;
  ein_ctx *own = monoid_ctx();
  for (int n = 0; n < count; n++) {
    rng_state = seed + 77 * (uint64_t)n;
    ein_graph *g = random_graph(own, (int)draw(1, 4));
    if (g == NULL) continue;
    values v;
    values_make(g, seed + (uint64_t)n, &v);
    for (int k = 0; k < g->nstmt; k++) {
      const eini_stmt *s = &g->stmt[k];
      if (!plain_output(g, s)) continue;
      int64_t size = orc_count(&g->tensor[s->out]);
      void *got = orc_alloc(size, 16);
      ein_status st = join_stmt(own, g, k, &v, got);
      // The oracle's bound covers errors of the operands, too, which are exact here.
      if (st != EIN_OK || !orc_compare_err(g->tensor[s->out].dtype, size, got, v.data[s->out],
                                           v.err[s->out])) {
        printf("relation %d of seed %llu, statement %d: %s\n", n, (unsigned long long)seed, k,
               ein_status_name(st));
        failures++;
      }
      checks++;
      joined++;
      free(got);
    }
    values_free(g, &v);
    ein_graph_destroy(g);
  }
  ein_ctx_destroy(own);
  printf("  %d joins\n", joined);
  CHECK(joined > count / 4);
}

// Every allocation of a join, an aggregation and a repartition fails once.
static void test_relation_memory(void) {
  static const char text[] = "input A[5,6], B[6,4] : f32\nC[i,k] = sum[j](A[i,j]*B[j,k])\n"
                             "D[i,k] = var[j](A[i,j]*B[j,k])\noutput C, D\n";
  ein_program_desc d;
  ein_graph *g;
  values v;
  float got[20];
  memset(&d, 0, sizeof d);
  d.text = text;
  CHECK(ein_graph_parse(NULL, &d, &g) == EIN_OK);
  values_make(g, 3, &v);
  for (int k = 0; k < 2; k++) {
    for (long n = 0;; n++) {
      counter c = {0, n, 0};
      ein_ctx_desc cd;
      ein_ctx *ctx;
      memset(&cd, 0, sizeof cd);
      cd.allocator.alloc_fn = count_alloc;
      cd.allocator.free_fn = count_free;
      cd.allocator.user = &c;
      rng_state = 5;
      ein_status st = ein_ctx_create(&cd, &ctx);
      if (st == EIN_OK) st = join_stmt(ctx, g, k, &v, got);
      ein_ctx_destroy(ctx);
      CHECK(c.live == 0 && (st == EIN_OK || st == EIN_ERR_NO_MEMORY));
      if (st == EIN_OK && c.calls <= n) break;
    }
    CHECK(orc_compare(EIN_F32, 20, got, v.data[2 + k], 6));
  }
  values_free(g, &v);
  ein_graph_destroy(g);
}

// ---- bytes, counted element by element from the definitions ----

static int64_t piece_of(int64_t extent, int64_t cut, int64_t i) {
  int64_t k = 0;
  while ((k + 1) * extent / cut <= i) k++;
  return k;
}

// The place of the task that holds point x; home: with reduced pieces 0.
static int64_t place_of(const eini_stmt *s, const ein_parts *e, const int64_t *x, int home) {
  int64_t place = 0;
  for (int j = 0; j < e->norder; j++) {
    int i = e->order[j];
    int64_t k = home && i >= s->nfree ? 0 : piece_of(s->index[i].extent, e->cut[i], x[i]);
    place = place * e->cut[i] + k;
  }
  return place;
}

static int64_t element_at(const eini_tensor *t, const eini_map *m, const int64_t *x) {
  int64_t at = 0;
  for (int r = 0; r < t->rank; r++) {
    int64_t y = m->offset[r];
    for (int c = 0; c < m->cols; c++) y += eini_map_coef(m, r, c) * x[c];
    at = at * t->shape[r] + y;
  }
  return at;
}

static int next_point(const eini_stmt *s, int n, int64_t *x) {
  for (int k = n - 1; k >= 0; k--) {
    if (++x[k] < s->index[k].extent) return 1;
    x[k] = 0;
  }
  return 0;
}

// Where every element of the graph's tensors lives; -1: everywhere, or nowhere.
static void find_homes(const ein_graph *g, const cuts *c, int **home) {
  for (int t = 0; t < g->ntensor; t++) {
    int64_t n = orc_count(&g->tensor[t]);
    home[t] = (int *)orc_alloc(n, sizeof(int));
    for (int64_t i = 0; i < n; i++) {
      const ein_parts *e = &c->pins[t];
      int64_t at[4] = {0}, left = i, place = 0;
      for (int r = g->tensor[t].rank - 1; r >= 0; r--) {
        at[r] = left % g->tensor[t].shape[r];
        left /= g->tensor[t].shape[r];
      }
      for (int j = 0; j < e->norder; j++) {
        int r = e->order[j];
        place = place * e->cut[r] + piece_of(g->tensor[t].shape[r], e->cut[r], at[r]);
      }
      home[t][i] = e->ntask > 0 ? (int)place : -1;
    }
  }
  for (int k = 0; k < g->nstmt; k++) {
    const eini_stmt *s = &g->stmt[k];
    int64_t x[MAX_INDEX] = {0};
    if (orc_empty(s->index, 0, s->nfree)) continue;
    do {
      home[s->out][element_at(&g->tensor[s->out], &s->out_map, x)] =
          (int)place_of(s, &c->parts[k], x, 1);
    } while (next_point(s, s->nfree, x));
  }
}

static int same_access(const eini_stmt *s, int a, int b) {
  if (s->operand[a] != s->operand[b]) return 0;
  const eini_map *m = &s->proj[a], *n = &s->proj[b];
  for (int r = 0; r < m->rows; r++) {
    if (m->offset[r] != n->offset[r]) return 0;
    for (int c = 0; c < m->cols; c++)
      if (eini_map_coef(m, r, c) != eini_map_coef(n, r, c)) return 0;
  }
  return 1;
}

// Elements of the box [lo, hi] of a tensor that live at other places.
static int64_t count_box(const eini_tensor *t, const int *home, const int64_t *lo,
                         const int64_t *hi, int place) {
  int64_t at[4] = {0}, n = 0;
  for (int r = 0; r < t->rank; r++) at[r] = lo[r];
  for (;;) {
    int64_t e = 0;
    for (int r = 0; r < t->rank; r++) e = e * t->shape[r] + at[r];
    n += home[e] >= 0 && home[e] != place;
    int r = t->rank - 1;
    for (; r >= 0 && ++at[r] > hi[r]; r--) at[r] = lo[r];
    if (r < 0) return n;
  }
}

// Bytes of one element's partial result: of an argmax a value and a position of 8 bytes, of a var
// count, mean and sum of squares, of a monoid of ours its state, else one value.
static int64_t partial_bytes(const ein_graph *g, const eini_stmt *s) {
  ein_dtype value = (ein_dtype)s->expr.node[s->expr.n - 1].dtype;
  switch (s->fold) {
    case EIN_FOLD_ARGMAX: case EIN_FOLD_ARGMIN:
      return 8 + (int64_t)ein_dtype_size(ein_dtype_compute(value));
    case EIN_FOLD_VAR: return 3 * (int64_t)ein_dtype_size(ein_dtype_compute(s->type));
    default: break;
  }
  if (s->fold < EIN_FOLD_USER) return (int64_t)ein_dtype_size(ein_dtype_compute(s->type));
  return strcmp(g->monoid[s->fold - EIN_FOLD_USER].name, "span") == 0 ? 16
         : strcmp(g->monoid[s->fold - EIN_FOLD_USER].name, "spread") == 0 ? 12 : 4;
}

// Are the partial results of a cut fold states?
static int has_state(const eini_stmt *s) { return s->fold > EIN_FOLD_LOGSUMEXP; }

// The hull [lo, hi] of what operand o of the task of statement k at a place reads; 0: nothing, or
// what another operand reads.
static int brute_box(const ein_graph *g, const cuts *c, int k, int o, int64_t q, int64_t *lo,
                     int64_t *hi) {
  const eini_stmt *s = &g->stmt[k];
  const eini_tensor *t = &g->tensor[s->operand[o]];
  int64_t x[MAX_INDEX] = {0};
  int any = 0;
  for (int b = 0; b < o; b++)
    if (same_access(s, b, o)) return 0;
  if (q >= c->parts[k].ntask || orc_empty(s->index, 0, s->nindex)) return 0;
  for (int r = 0; r < t->rank; r++) lo[r] = INT64_MAX, hi[r] = -1;
  do {
    if (place_of(s, &c->parts[k], x, 0) != q) continue;
    any = 1;
    for (int r = 0; r < t->rank; r++) {
      int64_t y = s->proj[o].offset[r];
      for (int i = 0; i < s->nindex; i++) y += eini_map_coef(&s->proj[o], r, i) * x[i];
      lo[r] = eini_min64(lo[r], y);
      hi[r] = eini_max64(hi[r], y);
    }
  } while (next_point(s, s->nindex, x));
  return any;
}

// Bytes of input t at a place: of a pinned one its block, else the elements that its tasks read.
static int64_t brute_held(const ein_graph *g, const cuts *c, int *const *home, int t, int q) {
  const eini_tensor *x = &g->tensor[t];
  int64_t n = orc_count(x), bytes = 0, lo[4], hi[4];
  unsigned char *held = (unsigned char *)orc_alloc(n, 1);
  memset(held, 0, (size_t)n);
  for (int k = 0; k < g->nstmt && c->pins[t].ntask == 0; k++) {
    for (int o = 0; o < g->stmt[k].noperand; o++) {
      if (g->stmt[k].operand[o] != t || !brute_box(g, c, k, o, q, lo, hi)) continue;
      for (int64_t e = 0; e < n; e++) {
        int64_t left = e;
        int inside = 1;
        for (int r = x->rank - 1; r >= 0; r--) {
          inside &= left % x->shape[r] >= lo[r] && left % x->shape[r] <= hi[r];
          left /= x->shape[r];
        }
        held[e] |= (unsigned char)inside;
      }
    }
  }
  for (int64_t e = 0; e < n; e++)
    bytes += (c->pins[t].ntask > 0 ? home[t][e] == q : held[e]) * (int64_t)ein_dtype_size(x->dtype);
  free(held);
  return bytes;
}

// Bytes that the task of statement k at a place reads from elsewhere.
static int64_t brute_fetched(const ein_graph *g, const cuts *c, int *const *home, int k,
                             int64_t q) {
  const eini_stmt *s = &g->stmt[k];
  int64_t bytes = 0, lo[4], hi[4];
  for (int o = 0; o < s->noperand; o++) {
    const eini_tensor *t = &g->tensor[s->operand[o]];
    if (!brute_box(g, c, k, o, q, lo, hi)) continue;
    bytes += count_box(t, home[s->operand[o]], lo, hi, (int)q) * (int64_t)ein_dtype_size(t->dtype);
  }
  return bytes;
}

static int64_t brute_bytes(const ein_graph *g, const cuts *c, int *const *home, int k) {
  const eini_stmt *s = &g->stmt[k];
  int64_t bytes, nagg = 1, elements = 1;
  for (int i = 0; i < s->nindex; i++) {
    if (i >= s->nfree) nagg *= c->parts[k].cut[i];
    else elements *= s->index[i].extent;
  }
  bytes = (nagg - 1) * elements * partial_bytes(g, s);
  for (int64_t q = 0; q < c->parts[k].ntask; q++) bytes += brute_fetched(g, c, home, k, q);
  return bytes;
}

// Most bytes of inputs, blocks, partial results and what tasks fetched alive at one place,
// statement by statement.
static int64_t brute_peak(const ein_graph *g, const cuts *c, int *const *home, int places) {
  int64_t peak = 0;
  for (int q = 0; q < places; q++) {
    int64_t held = 0;
    for (int t = 0; t < g->ntensor; t++)
      if (g->tensor[t].role == EIN_ROLE_INPUT) held += brute_held(g, c, home, t, q);
    if (held > peak) peak = held;
    for (int k = 0; k < g->nstmt; k++) {
      const eini_stmt *s = &g->stmt[k];
      int64_t bytes = held + brute_fetched(g, c, home, k, q), x[MAX_INDEX] = {0}, nagg = 1;
      ein_dtype wide = ein_dtype_compute(s->type);
      for (int u = 0; u <= k; u++) {  // blocks that a later statement reads, or that are outputs
        const eini_stmt *b = &g->stmt[u];
        int64_t y[MAX_INDEX] = {0};
        int alive = u == k || g->tensor[b->out].role == EIN_ROLE_OUTPUT;
        for (int r = k; r < g->nstmt; r++)
          for (int o = 0; o < g->stmt[r].noperand; o++) alive |= g->stmt[r].operand[o] == b->out;
        if (!alive || orc_empty(b->index, 0, b->nfree)) continue;
        do {
          int64_t at = element_at(&g->tensor[b->out], &b->out_map, y);
          if (home[b->out][at] == q) bytes += (int64_t)ein_dtype_size(g->tensor[b->out].dtype);
        } while (next_point(b, b->nfree, y));
      }
      for (int i = s->nfree; i < s->nindex; i++) nagg *= c->parts[k].cut[i];
      if (nagg > 1 && !orc_empty(s->index, 0, s->nfree)) {  // one point per free index and partial
        do {
          int first = 1, part = 0;
          for (int i = s->nfree; i < s->nindex; i++) {
            int64_t d = piece_of(s->index[i].extent, c->parts[k].cut[i], x[i]);
            int64_t e = s->index[i].extent, n = c->parts[k].cut[i];
            first &= piece_of(e, n, x[i]) != (x[i] > 0 ? piece_of(e, n, x[i] - 1) : -1);
            part |= d > 0;
          }
          if (first && place_of(s, &c->parts[k], x, 0) == q &&
              (part || has_state(s) || g->tensor[s->out].dtype != wide))
            bytes += partial_bytes(g, s);
        } while (next_point(s, s->nindex, x));
      }
      if (bytes > peak) peak = bytes;
    }
  }
  return peak;
}

// ---- one case ----

typedef struct outcome {
  ein_status status;
  void *out[MAX_TENSORS];
  int nout;
  ein_dist_stats stats;
  int64_t stmt_bytes[MAX_STMTS];
  ein_place_stats place[64];
} outcome;

static void outcome_free(outcome *r) {
  for (int o = 0; o < r->nout; o++) free(r->out[o]);
  r->nout = 0;
}

enum { NO_REUSE = 1, NO_OVERLAP = 2 };

// Plans and runs the graph under cuts on a fabric; where places have memory of their own, twice in
// the memory that the plan keeps, which is filled with what a run must not need.
static void run_dist(ein_ctx *ctx, const ein_graph *g, const cuts *c, const ein_fabric *f,
                     const values *v, int how, outcome *r, ein_dist_info *info) {
  ein_dist_desc desc;
  ein_dist *d;
  ein_run run;
  const void *in[MAX_TENSORS];
  int nin = 0;
  memset(r, 0, sizeof *r);
  memset(&desc, 0, sizeof desc);
  memset(&run, 0, sizeof run);
  desc.fabric = f;
  desc.parts = c->parts;
  desc.pins = c->pins;
  desc.no_reuse = how & NO_REUSE;
  desc.no_overlap = (how & NO_OVERLAP) != 0;
  for (int t = 0; t < g->ntensor; t++) {
    if (g->tensor[t].role == EIN_ROLE_INPUT) in[nin++] = v->data[t];
    if (g->tensor[t].role == EIN_ROLE_OUTPUT)
      r->out[r->nout++] = orc_alloc(orc_count(&g->tensor[t]), 16);
  }
  run.in = in;
  run.out = r->out;
  r->stats.nstmt = g->nstmt;
  r->stats.stmt_bytes = r->stmt_bytes;
  r->stats.nplace = 64;
  r->stats.place = r->place;
  r->status = ein_dist_create(ctx, g, &desc, &d);
  if (r->status != EIN_OK) return;
  ein_dist_info_get(d, info);
  if (!f->shared) {
    r->status = ein_dist_execute(d, &run, NULL);
    if (r->status == EIN_OK) memset(*d->kept, 0x7f, d->workspace);
  }
  if (r->status == EIN_OK) r->status = ein_dist_execute(d, &run, &r->stats);
  for (int k = 0; k < g->nstmt && r->status == EIN_OK; k++)
    if (r->stmt_bytes[k] != ein_dist_bytes(d, k)) r->status = EIN_ERR_INTERNAL;
  ein_dist_destroy(d);
}

// ---- runs that bind blocks ----

typedef struct block {
  int64_t origin[8], extent[8], elements;
  char *data;
} block;

static long blocks_bound, blocks_refused;

// Is element i of a tensor in the block? *at: its number there.
static int in_block(const eini_tensor *t, const block *b, int64_t i, int64_t *at) {
  int64_t step = 1;
  *at = 0;
  for (int r = t->rank - 1; r >= 0; r--) {
    const int64_t x = i % t->shape[r] - b->origin[r];
    i /= t->shape[r];
    if (x < 0 || x >= b->extent[r]) return 0;
    *at += x * step;
    step *= b->extent[r];
  }
  return 1;
}

// The block of tensor t at place q; home: where each element lives, -1: everywhere. Blocks have
// exactly the memory that they need.
static int block_make(const ein_dist *d, const ein_graph *g, int t, int q, const int *home,
                      const char *whole, block *b) {
  const eini_tensor *e = &g->tensor[t];
  const size_t size = ein_dtype_size(e->dtype);
  int64_t n = 0, at;
  b->data = NULL;
  if (ein_dist_block(d, t, q, b->origin, b->extent, &b->elements) != EIN_OK) return 0;
  if (b->elements > 0) b->data = (char *)malloc((size_t)b->elements * size);
  for (int64_t i = 0; i < orc_count(e); i++) {
    const int here = b->elements > 0 && in_block(e, b, i, &at);
    if (here != (home[i] == q || home[i] < 0)) return 0;
    if (here && whole != NULL) memcpy(b->data + (size_t)at * size, whole + (size_t)i * size, size);
    else if (here) memset(b->data + (size_t)at * size, 0x5a, size);
    n += here;
  }
  return n == b->elements;
}

// As run_dist, with nothing bound but blocks. 0: it is refused, since they are no boxes.
static int run_blocks(ein_ctx *ctx, const ein_graph *g, const cuts *c, const ein_fabric *f,
                      const values *v, int *const *home, outcome *r) {
  static block all[MAX_TENSORS][64];
  const void *in[MAX_TENSORS * 64];
  void *out[MAX_TENSORS * 64];
  ein_dist_desc desc;
  ein_dist *d;
  ein_run run;
  int nin = 0, nout = 0;
  memset(r, 0, sizeof *r);
  memset(&desc, 0, sizeof desc);
  memset(&run, 0, sizeof run);
  desc.fabric = f;
  desc.parts = c->parts;
  desc.pins = c->pins;
  desc.blocks = 1;
  r->status = ein_dist_create(ctx, g, &desc, &d);
  if (r->status == EIN_ERR_UNSUPPORTED) return 0;
  if (r->status != EIN_OK) return 1;
  for (int t = 0; t < g->ntensor; t++) {
    const ein_role role = g->tensor[t].role;
    for (int q = 0; q < f->places && role != EIN_ROLE_TEMP; q++) {
      block *b = &all[t][q];
      if (!block_make(d, g, t, q, home[t], role == EIN_ROLE_INPUT ? (char *)v->data[t] : NULL, b))
        r->status = EIN_ERR_INTERNAL;
      if (role == EIN_ROLE_INPUT) in[nin++] = b->data;
      else out[nout++] = b->data;
    }
  }
  run.in = in;
  run.out = out;
  if (r->status == EIN_OK) r->status = ein_dist_execute(d, &run, &r->stats);
  for (int t = 0; t < g->ntensor; t++) {
    const eini_tensor *e = &g->tensor[t];
    const size_t size = ein_dtype_size(e->dtype);
    if (e->role == EIN_ROLE_TEMP) continue;
    char *whole = e->role == EIN_ROLE_OUTPUT ? (char *)orc_alloc(orc_count(e), 16) : NULL;
    for (int q = 0; q < f->places; q++) {
      int64_t at;
      for (int64_t i = 0; i < orc_count(e) && whole != NULL && all[t][q].elements > 0; i++)
        if (in_block(e, &all[t][q], i, &at))
          memcpy(whole + (size_t)i * size, all[t][q].data + (size_t)at * size, size);
      free(all[t][q].data);
    }
    if (whole != NULL) r->out[r->nout++] = whole;
  }
  ein_dist_destroy(d);
  return 1;
}

// Are the outputs what the oracle says?
static int right(const ein_graph *g, const values *v, const outcome *r) {
  int ok = r->status == EIN_OK;
  for (int t = 0, o = 0; t < g->ntensor && ok; t++) {
    if (g->tensor[t].role != EIN_ROLE_OUTPUT) continue;
    ok = orc_compare_err(g->tensor[t].dtype, orc_count(&g->tensor[t]), r->out[o++], v->data[t],
                         v->err[t]);
  }
  return ok;
}

static int same_bits(const ein_graph *g, const outcome *a, const outcome *b) {
  int same = a->status == b->status;
  for (int t = 0, o = 0; t < g->ntensor && same; t++) {
    if (g->tensor[t].role != EIN_ROLE_OUTPUT) continue;
    size_t n = (size_t)orc_count(&g->tensor[t]) * ein_dtype_size(g->tensor[t].dtype);
    same = memcmp(a->out[o], b->out[o], n) == 0;
    o++;
  }
  return same;
}

static void report(const ein_graph *g, const cuts *c, int n, int p, const char *what) {
  static char text[16384];
  failures++;
  printf("FAIL case %d, p = %d: %s\n", n, p, what);
  ein_graph_print(g, text, sizeof text);
  printf("%s", text);
  for (int k = 0; k < g->nstmt; k++) {
    printf("  statement %d:", k);
    for (int i = 0; i < c->parts[k].nindex; i++)
      printf(" %s=%lld", g->stmt[k].index[i].name, (long long)c->parts[k].cut[i]);
    printf(" order");
    for (int i = 0; i < c->parts[k].norder; i++) printf(" %d", c->parts[k].order[i]);
    printf("\n");
  }
}

static long total_bytes, total_partial;

// Do places together have the figures of the run?
static int places_add_up(const outcome *r) {
  ein_place_stats all;
  memset(&all, 0, sizeof all);
  for (int q = 0; q < 64; q++) {
    all.tasks += r->place[q].tasks;
    all.received_bytes += r->place[q].received_bytes;
    all.sent_bytes += r->place[q].sent_bytes;
  }
  return r->status != EIN_OK ||
         (all.tasks == r->stats.tasks && all.received_bytes == r->stats.bytes &&
          all.sent_bytes == r->stats.bytes);
}

// Does a run on a clock, without data, have the figures of one that moves all, place by place?
static int clock_counts(const ein_graph *g, const cuts *c, const values *v, int p, int how,
                        const outcome *m) {
  ein_fabric f;
  outcome r;
  ein_dist_info info;
  int64_t messages, bytes;
  CHECK(ein_fabric_sim(NULL, p, NULL, &f) == EIN_OK);
  run_dist(NULL, g, c, &f, v, how, &r, &info);
  ein_fabric_moved(&f, &messages, &bytes);
  int same = r.status == m->status && messages == 2 * m->stats.messages &&
             bytes == 2 * m->stats.bytes && r.stats.tasks == m->stats.tasks &&
             r.stats.bytes == m->stats.bytes && r.stats.messages == m->stats.messages &&
             (r.stats.seconds > 0 || r.stats.tasks == 0);
  for (int q = 0; q < 64; q++) r.place[q].busy = 0;
  same &= memcmp(r.place, m->place, sizeof r.place) == 0;
  ein_fabric_destroy(&f);
  outcome_free(&r);
  return same;
}

static void test_case(int n, int p, const ein_graph *g, const cuts *c, const values *v,
                      ein_ctx *ctx) {
  ein_fabric serial, threads, copying;
  outcome a, b, b2, mt, m, own;
  int64_t moved_bytes, moved_messages;
  ein_dist_info info;
  int *home[MAX_TENSORS];
  int64_t bytes = 0;
  ein_fabric_serial(p, &serial);
  ein_fabric_threads(p, &threads);
  run_dist(ctx, g, c, &serial, v, 0, &a, &info);
  checks += 5;
  if (!right(g, v, &a)) report(g, c, n, p, "serial differs");
  if (a.status == EIN_OK &&
      (a.stats.bytes != info.bytes || a.stats.messages != info.messages ||
       a.stats.tasks != info.tasks))
    report(g, c, n, p, "counted is not predicted");
  find_homes(g, c, home);
  for (int k = 0; k < g->nstmt; k++) {
    int64_t want = brute_bytes(g, c, home, k);
    bytes += want;
    if (a.status == EIN_OK && a.stmt_bytes[k] != want) {
      printf("statement %d: %lld bytes, want %lld\n", k, (long long)a.stmt_bytes[k],
             (long long)want);
      report(g, c, n, p, "bytes differ from a count of elements");
    }
    total_partial += c->parts[k].ntask > 1;
  }
  total_bytes += (long)bytes;
  int empty = 0;
  for (int k = 0; k < g->nstmt; k++)
    empty |= orc_empty(g->stmt[k].index, g->stmt[k].nfree, g->stmt[k].nindex);
  if (a.status == EIN_OK && !empty && brute_peak(g, c, home, p) != info.peak_bytes)
    report(g, c, n, p, "the peak is wrong");
  run_dist(ctx, g, c, &threads, v, n % 4 == 0, &b, &info);
  if (!same_bits(g, &a, &b)) report(g, c, n, p, "threads differ from serial");
  if (b.status == EIN_OK && (b.stats.bytes != bytes || b.stats.tasks != a.stats.tasks ||
                             b.stats.messages != a.stats.messages))
    report(g, c, n, p, "threads count differently");
  run_dist(ctx, g, c, &threads, v, n % 4 == 0, &b2, &info);
  if (!same_bits(g, &b, &b2)) report(g, c, n, p, "two runs differ");
  CHECK(ein_fabric_copying(NULL, p, &copying) == EIN_OK);
  run_dist(ctx, g, c, &copying, v, n % 4, &m, &info);
  ein_fabric_moved(&copying, &moved_messages, &moved_bytes);
  moved_messages /= 2, moved_bytes /= 2;
  if (!right(g, v, &m)) report(g, c, n, p, "copying differs");
  if (!places_add_up(&a) || !places_add_up(&b) || !places_add_up(&m) ||
      (a.status == EIN_OK && b.status == EIN_OK && m.status == EIN_OK &&
       (memcmp(a.place, b.place, sizeof a.place) != 0 ||
        memcmp(a.place, m.place, sizeof a.place) != 0)))
    report(g, c, n, p, "figures of places differ");
  if (moved_bytes != bytes || m.stats.bytes != bytes || m.stats.tasks != a.stats.tasks ||
      moved_messages != a.stats.messages || m.stats.messages != a.stats.messages)
    report(g, c, n, p, "moved is not counted");
  if (m.status == EIN_OK && !clock_counts(g, c, v, p, n % 4, &m))
    report(g, c, n, p, "on a clock is not what is moved");
  copying.threads = 1;
  run_dist(ctx, g, c, &copying, v, n / 4 % 4, &mt, &info);
  if (!right(g, v, &mt) || mt.stats.bytes != bytes || mt.stats.tasks != a.stats.tasks)
    report(g, c, n, p, "copying on threads differs");
  copying.threads = 0;
  if (!run_blocks(ctx, g, c, &copying, v, home, &own)) {
    blocks_refused++;
  } else {
    blocks_bound++;
    if (!same_bits(g, &m, &own) || own.stats.bytes != m.stats.bytes)
      report(g, c, n, p, "bound by blocks differs");
    outcome_free(&own);
  }
  for (int t = 0; t < g->ntensor; t++) free(home[t]);
  ein_fabric_destroy(&copying);
  outcome_free(&a);
  outcome_free(&b);
  outcome_free(&b2);
  outcome_free(&mt);
  outcome_free(&m);
}

// The cuts ein_decompose finds by its model of bytes, with some inputs pinned, and what it
// predicts; 0: none.
static int best_cuts(const ein_graph *g, int p, ein_inputs inputs, cuts *c, double *bytes,
                     double *peak) {
  static char pin[MAX_TENSORS][64];
  const char *pins[MAX_TENSORS];
  ein_sim_desc sim;
  ein_sim_info info;
  ein_decompose_desc d;
  ein_decomposition *how;
  memset(&d, 0, sizeof d);
  d.p = p;
  d.cost = EIN_COST_BYTES;
  d.inputs = inputs;
  d.pin = pins;
  for (int t = 0; t < g->ntensor && chance(50); t++) {
    const eini_tensor *x = &g->tensor[t];
    int r = x->rank > 0 ? (int)draw(0, x->rank - 1) : 0;
    if (x->role != EIN_ROLE_INPUT || x->rank == 0 || eini_min64(p, x->shape[r]) < 2) continue;
    snprintf(pin[t], sizeof pin[t], "%s[%d=%d]", x->name, r,
             (int)draw(2, eini_min64(p, x->shape[r])));
    pins[d.npin++] = pin[t];
  }
  ein_status st = ein_decompose(NULL, g, &d, &how);
  CHECK(st == EIN_OK);
  if (st != EIN_OK) return 0;
  memset(c, 0, sizeof *c);
  memset(&sim, 0, sizeof sim);
  sim.peak = peak;
  CHECK(ein_simulate(NULL, g, how, &sim, &info) == EIN_OK);
  *bytes = 0;
  for (int k = 0; k < g->nstmt; k++) {
    ein_decomposition_parts(how, k, &c->parts[k]);
    *bytes += c->parts[k].join + c->parts[k].agg + c->parts[k].repart;
    for (int i = 0; i < c->parts[k].nindex; i++) c->cut[k][i] = c->parts[k].cut[i];
    for (int i = 0; i < c->parts[k].norder; i++) c->order[k][i] = c->parts[k].order[i];
    c->parts[k].cut = c->cut[k];
    c->parts[k].order = c->order[k];
  }
  for (int t = 0; t < g->ntensor; t++) {
    ein_parts *e = &c->pins[t];
    if (ein_decomposition_pin(how, t, e) != EIN_OK) continue;
    for (int r = 0; r < e->nindex; r++) c->pin_cut[t][r] = e->cut[r];
    for (int i = 0; i < e->norder; i++) c->pin_order[t][i] = e->order[i];
    e->cut = c->pin_cut[t];
    e->order = c->pin_order[t];
  }
  ein_decomposition_destroy(how);
  return 1;
}

// Is the peak of every place, on fabrics that share memory and that copy, as it was simulated?
static void test_peaks(int n, int p, const ein_graph *g, const cuts *c, ein_inputs inputs,
                       const double *peak) {
  for (int kind = 0; kind < 2; kind++) {
    ein_fabric f;
    ein_dist_desc desc;
    ein_dist *d;
    memset(&desc, 0, sizeof desc);
    if (kind == 0) ein_fabric_serial(p, &f);
    else ein_fabric_copying(NULL, p, &f);
    desc.fabric = &f;
    desc.parts = c->parts;
    desc.pins = c->pins;
    desc.inputs = inputs;
    CHECK(ein_dist_create(NULL, g, &desc, &d) == EIN_OK);
    int same = 1;
    for (int q = 0; q < p; q++) same &= (double)ein_dist_peak(d, q) == peak[q];
    checks++;
    if (!same) {
      for (int q = 0; q < p; q++)
        printf("place %d: simulated %.0f, %lld\n", q, peak[q], (long long)ein_dist_peak(d, q));
      report(g, c, n, p, "the simulated peak is wrong");
    }
    ein_dist_destroy(d);
    ein_fabric_destroy(&f);
  }
}

// ---- simulated messages: those that the copying fabric sends, on links with limits ----

typedef struct letter {
  int stmt, from, to;
  double bytes, sent, arrived;
} letter;

typedef struct letters {
  ein_fabric inner;
  letter *x;
  int n, cap;
  int64_t tags;             // of a statement
} letters;

static void letters_add(letters *l, letter x) {
  if (l->n == l->cap) {
    l->cap = l->cap < 64 ? 64 : 2 * l->cap;
    l->x = (letter *)realloc(l->x, (size_t)l->cap * sizeof *l->x);
  }
  l->x[l->n++] = x;
}

static ein_status watched_send(void *user, int from, int to, int64_t tag, const void *data,
                               size_t bytes, ein_ticket *ticket) {
  letters *l = (letters *)user;
  letter x = {(int)(tag / l->tags), from, to, (double)bytes, 0, 0};
  letters_add(l, x);
  return l->inner.send_fn(l->inner.user, from, to, tag, data, bytes, ticket);
}

static ein_status watched_recv(void *user, int to, int from, int64_t tag, void *data, size_t bytes,
                               ein_ticket *ticket) {
  letters *l = (letters *)user;
  return l->inner.recv_fn(l->inner.user, to, from, tag, data, bytes, ticket);
}

static ein_status watched_test(void *user, ein_ticket ticket, int *done) {
  letters *l = (letters *)user;
  return l->inner.test_fn(l->inner.user, ticket, done);
}

static ein_status watched_wait(void *user, ein_ticket ticket) {
  letters *l = (letters *)user;
  return l->inner.wait_fn(l->inner.user, ticket);
}

static void simulated_move(void *user, const ein_sim_move *m) {
  letter x = {m->stmt, (int)m->from, (int)m->to, m->bytes, m->sent, m->arrived};
  letters_add((letters *)user, x);
}

static int letter_order(const void *a, const void *b) {
  const letter *x = (const letter *)a, *y = (const letter *)b;
  if (x->stmt != y->stmt) return x->stmt - y->stmt;
  if (x->from != y->from) return x->from - y->from;
  if (x->to != y->to) return x->to - y->to;
  return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

// Does some window of time carry more than a link can: of what leaves a place, or comes in?
static int link_exceeded(const letters *l, int places, const ein_machine *m) {
  for (int q = 0; q < places; q++) {
    for (int side = 0; side < 2; side++) {
      for (int i = 0; i < l->n; i++) {  // windows begin and end with a message
        for (int j = 0; j < l->n; j++) {
          double takes = 1 / m->bandwidth, bytes = 0, begin, end;
          if ((side ? l->x[i].to : l->x[i].from) != q || (side ? l->x[j].to : l->x[j].from) != q)
            continue;
          begin = side ? l->x[i].arrived - l->x[i].bytes * takes : l->x[i].sent;
          end = side ? l->x[j].arrived : l->x[j].sent + l->x[j].bytes * takes;
          if (end <= begin) continue;
          for (int k = 0; k < l->n; k++) {
            const letter *x = &l->x[k];
            double b = side ? x->arrived - x->bytes * takes : x->sent;
            if ((side ? x->to : x->from) != q) continue;
            if (b >= begin * (1 - 1e-12) && b + x->bytes * takes <= end * (1 + 1e-12))
              bytes += x->bytes;
          }
          if (bytes > m->bandwidth * (end - begin) * (1 + 1e-9) + 1e-6) return 1;
        }
      }
    }
  }
  return 0;
}

// Do messages through the link of a node that all leave after one of them does and are there before
// another one is carry more than it can?
static int node_exceeded(const letters *l, int places, const ein_machine *m) {
  for (int node = 0; m->node > 0 && node * m->node < places; node++) {
    for (int i = 0; i < 2 * l->n * l->n; i++) {
      const double begin = l->x[i / 2 / l->n].sent, end = l->x[i / 2 % l->n].arrived;
      double bytes = 0;
      for (int k = 0; k < l->n && end > begin; k++) {
        const letter *x = &l->x[k];
        const int64_t from = x->from / m->node, to = x->to / m->node;
        if (from != to && (i % 2 ? to : from) == node && x->sent >= begin && x->arrived <= end)
          bytes += x->bytes;
      }
      if (bytes > 0 && bytes > m->node_bandwidth * (end - begin) * (1 + 1e-9) + 1e-6) return 1;
    }
  }
  return 0;
}

// Random vectors for all statements whose names can be given them.
static ein_decomposition *random_decomposition(const ein_graph *g, int p) {
  static char text[MAX_STMTS][256];
  const char *parts[MAX_STMTS];
  ein_decompose_desc d;
  ein_decomposition *how = NULL;
  memset(&d, 0, sizeof d);
  d.p = p;
  d.cost = EIN_COST_BYTES;
  d.method = "given";
  d.parts = parts;
  for (int k = 0; k < g->nstmt; k++) {
    const eini_stmt *s = &g->stmt[k];
    int64_t limit[MAX_INDEX], left = p;
    size_t n = (size_t)snprintf(text[k], sizeof text[k], "%s[", g->tensor[s->out].name);
    int some = 0;
    eini_cut_limits(g, s, limit);
    for (int i = 0; i < s->nindex; i++) {
      int64_t most = eini_min64(limit[i], left);
      int named = 0;
      for (int j = 0; j < s->nindex; j++) named += strcmp(s->index[i].name, s->index[j].name) == 0;
      if (most < 2 || named > 1 || chance(40)) continue;
      int64_t cut = draw(2, most);
      n += (size_t)snprintf(text[k] + n, sizeof text[k] - n, "%s%s=%d", some++ ? "," : "",
                            s->index[i].name, (int)cut);
      left /= cut;
    }
    snprintf(text[k] + n, sizeof text[k] - n, "]");
    if (some && g->tensor[s->out].nstmt == 1) parts[d.nparts++] = text[k];
  }
  if (ein_decompose(NULL, g, &d, &how) != EIN_OK) return NULL;
  return how;
}

// Sends what a plan for the decomposition moves on a copying fabric through `l`.
static int watched_run(const ein_graph *g, const ein_decomposition *how, const values *v, int p,
                       letters *l) {
  const void *in[MAX_TENSORS];
  void *out[MAX_TENSORS];
  int nin = 0, nout = 0;
  ein_fabric f;
  ein_dist_desc desc;
  ein_dist *d;
  ein_run run;
  CHECK(ein_fabric_copying(NULL, p, &l->inner) == EIN_OK);
  f = l->inner;
  f.user = l;
  f.send_fn = watched_send;
  f.recv_fn = watched_recv;
  f.test_fn = watched_test;
  f.wait_fn = watched_wait;
  f.destroy_fn = NULL;
  memset(&desc, 0, sizeof desc);
  memset(&run, 0, sizeof run);
  desc.fabric = &f;
  desc.decomposition = how;
  for (int t = 0; t < g->ntensor; t++) {
    if (g->tensor[t].role == EIN_ROLE_INPUT) in[nin++] = v->data[t];
    if (g->tensor[t].role == EIN_ROLE_OUTPUT) out[nout++] = orc_alloc(orc_count(&g->tensor[t]), 16);
  }
  run.in = in;
  run.out = out;
  ein_place_stats place[64];
  ein_dist_stats stats;
  memset(&stats, 0, sizeof stats);
  stats.nplace = 64;
  stats.place = place;
  const int from = l->n;
  ein_status st = ein_dist_create(NULL, g, &desc, &d);
  if (st == EIN_OK) l->tags = d->tags;
  if (st == EIN_OK) st = ein_dist_execute(d, &run, &stats);
  for (int i = from; i < l->n && st == EIN_OK; i++) {
    place[l->x[i].from].sent_bytes -= (int64_t)l->x[i].bytes;
    place[l->x[i].to].received_bytes -= (int64_t)l->x[i].bytes;
  }
  for (int q = 0; q < 64 && st == EIN_OK; q++)
    CHECK(place[q].sent_bytes == 0 && place[q].received_bytes == 0);
  ein_dist_destroy(d);
  for (int o = 0; o < nout; o++) free(out[o]);
  ein_fabric_destroy(&l->inner);
  return st == EIN_OK;
}

static void test_messages(int count, uint64_t seed) {
  static const int places[] = {2, 3, 4, 6, 8, 12, 16};
  ein_ctx *own = monoid_ctx();
  long total = 0;
  int done = 0;
  for (int n = 0; n < count; n++) {
    rng_state = seed * 1000003 + (uint64_t)n;
    ein_graph *g = random_graph(own, (int)draw(1, 6));
    int p = places[draw(0, 6)], empty = 0;
    ein_decomposition *how = NULL;
    values v;
    if (g != NULL && g->nstmt <= MAX_STMTS) how = random_decomposition(g, p);
    for (int k = 0; how != NULL && k < g->nstmt; k++)  // a scalar that no point reads is counted
      empty |= orc_empty(g->stmt[k].index, 0, g->stmt[k].nindex);
    if (how == NULL || empty) {
      ein_decomposition_destroy(how);
      ein_graph_destroy(g);
      continue;
    }
    letters real, simulated;
    ein_machine m;
    ein_sim_desc desc;
    ein_sim_info info;
    memset(&real, 0, sizeof real);
    memset(&simulated, 0, sizeof simulated);
    memset(&m, 0, sizeof m);
    memset(&desc, 0, sizeof desc);
    m.bandwidth = chance(50) ? 1e3 : 1e9;
    m.latency = chance(50) ? 1e-6 : 1e-2;
    m.flops = chance(50) ? 1e3 : 1e9;
    m.node = draw(0, 4);
    m.node_bandwidth = m.bandwidth * (chance(50) ? 0.5 : 3);
    m.node_latency = m.latency * 2;
    desc.machine = &m;
    desc.move_fn = simulated_move;
    desc.user = &simulated;
    values_make(g, seed + (uint64_t)n, &v);
    CHECK(ein_simulate(NULL, g, how, &desc, &info) == EIN_OK);
    CHECK(watched_run(g, how, &v, p, &real));
    double bytes = 0;
    int late = 0;
    for (int i = 0; i < simulated.n; i++) {
      const letter *x = &simulated.x[i];
      bytes += x->bytes;
      const int far = m.node > 0 && m.node < p && x->from / m.node != x->to / m.node;
      late += x->arrived < (x->sent + (far ? m.node_latency : m.latency) +
                            x->bytes / m.bandwidth) * (1 - 1e-12);
      late += x->arrived > info.seconds * (1 + 1e-12);
    }
    CHECK(late == 0 && info.messages == simulated.n && info.join + info.agg == bytes);
    CHECK(simulated.n > 150 || m.node > 0 || !link_exceeded(&simulated, p, &m));
    CHECK(simulated.n > 60 || !node_exceeded(&simulated, p, &m));
    if (real.n > 0) qsort(real.x, (size_t)real.n, sizeof *real.x, letter_order);
    if (simulated.n > 0) qsort(simulated.x, (size_t)simulated.n, sizeof *simulated.x, letter_order);
    int same = real.n == simulated.n;
    for (int i = 0; i < real.n && same; i++) same = letter_order(&real.x[i], &simulated.x[i]) == 0;
    CHECK(same);
    if (!same) {
      static char text[16384];
      ein_graph_print(g, text, sizeof text);
      printf("case %d: %d messages, simulated %d\n%s", n, real.n, simulated.n, text);
    }
    total += real.n;
    done++;
    free(real.x);
    free(simulated.x);
    values_free(g, &v);
    ein_decomposition_destroy(how);
    ein_graph_destroy(g);
  }
  printf("  %d decompositions, %ld messages as simulated\n", done, total);
  CHECK(done > count / 4 && total > count);
  ein_ctx_destroy(own);
}

// ---- the executor on a clock: what is simulated is what it takes ----

// What is told of a run on a clock.
typedef struct told {
  double free[64], last;     // when a place is done with its tasks so far
  int64_t tasks, messages, bytes;
  int wrong;
} told;

static ein_status told_event(void *user, const ein_dist_event *e) {
  told *t = (told *)user;
  t->wrong += !(e->begin <= e->end && e->begin >= 0 && e->end >= t->last);
  t->last = e->end;
  if (e->level >= -1) {  // one at a time
    t->wrong += e->begin < t->free[e->place];
    t->free[e->place] = e->end;
    t->tasks++;
  } else {
    t->wrong += e->level != -4 || e->from == e->place || e->bytes <= 0;
    t->messages++, t->bytes += e->bytes;
  }
  return EIN_OK;
}

// Seconds that a decomposition takes on a clock, over what is simulated.
static double clock_ratio(const ein_graph *g, const ein_decomposition *how, int p,
                          const ein_machine *machine) {
  ein_fabric f;
  ein_dist *d;
  ein_dist_desc desc;
  ein_sim_desc sim;
  ein_sim_info info;
  ein_dist_stats stats;
  ein_place_stats place[64];
  double busy = 0, first;
  told t;
  memset(&t, 0, sizeof t);
  memset(&desc, 0, sizeof desc);
  memset(&sim, 0, sizeof sim);
  memset(&stats, 0, sizeof stats);
  stats.nplace = 64, stats.place = place;
  sim.machine = machine;
  CHECK(ein_simulate(NULL, g, how, &sim, &info) == EIN_OK);
  CHECK(ein_fabric_sim(NULL, p, machine, &f) == EIN_OK);
  desc.fabric = &f;
  desc.decomposition = how;
  desc.event_fn = told_event;
  desc.event_user = &t;
  CHECK(ein_dist_create(NULL, g, &desc, &d) == EIN_OK);
  CHECK(ein_dist_execute(d, NULL, &stats) == EIN_OK);
  first = stats.seconds;
  CHECK(t.wrong == 0 && t.last <= first && t.tasks == stats.tasks);
  CHECK(t.messages == stats.messages && t.bytes == stats.bytes);
  memset(&t, 0, sizeof t);
  CHECK(ein_dist_execute(d, NULL, &stats) == EIN_OK);
  CHECK(stats.seconds <= first && stats.seconds >= first);  // from 0 on
  CHECK((double)stats.messages == info.messages && (double)stats.bytes == info.join + info.agg);
  for (int q = 0; q < 64; q++) busy += place[q].busy;
  CHECK(stats.seconds <= 0 || (busy <= p * stats.seconds * (1 + 1e-9) && busy > 0));
  ein_dist_destroy(d);
  ein_fabric_destroy(&f);
  return stats.seconds / info.seconds;
}

// A place may run what comes later while it waits, which is not simulated, and memory that is used
// again may make a transfer wait more, or less, than the simulation says.
static void test_clock(int count, uint64_t seed) {
  static const int places[] = {2, 3, 4, 6, 8, 12, 16};
  double least = INFINITY, most = 0;
  int done = 0, exact = 0;
  for (int n = 0; n < count; n++) {
    rng_state = seed * 1000003 + (uint64_t)n;
    ein_graph *g = random_graph(NULL, (int)draw(1, 6));
    const int p = places[draw(0, 6)];
    ein_decomposition *how = NULL;
    ein_machine m;
    memset(&m, 0, sizeof m);
    m.bandwidth = chance(50) ? 1e7 : 1e9;
    m.latency = chance(50) ? 1e-6 : 1e-4;
    m.flops = chance(50) ? 1e6 : 1e9;
    m.memory_bw = 1e9, m.overhead = 1e-6;
    if (chance(40)) m.node = draw(1, 8), m.node_bandwidth = chance(50) ? 1e7 : 1e8;
    int empty = 0;  // a scalar that no point reads is counted
    for (int k = 0; g != NULL && k < g->nstmt; k++)
      empty |= orc_empty(g->stmt[k].index, 0, g->stmt[k].nindex);
    if (g != NULL && !empty && g->nstmt <= MAX_STMTS) how = random_decomposition(g, p);
    if (how != NULL) {
      const double ratio = clock_ratio(g, how, p, &m);
      least = fmin(least, ratio);
      most = fmax(most, ratio);
      exact += fabs(ratio - 1) < 1e-9;
      done++;
    }
    ein_decomposition_destroy(how);
    ein_graph_destroy(g);
  }
  printf("  %d decompositions on a clock: %.3g to %.3g of what is simulated, %d exactly that\n",
         done, least, most, exact);
  CHECK(done > count / 4 && exact > done / 2 && least > 1. / 3 && most < 3);
}

static ein_graph *parse_in(ein_ctx *ctx, const char *text);

// All places send to all others: no link waits for another, so that it takes a place's messages.
static void test_all_to_all(int p) {
  char text[200];
  ein_graph *g = parse_in(NULL, "input X[m=48,n=48]\nY[j,i] = X[i,j] * 2\n");
  ein_machine m;
  ein_decompose_desc how;
  ein_decomposition *x;
  ein_schedule_desc said;
  ein_schedule *s;
  ein_sim_info info;
  ein_sim_desc sim;
  char pin[2][20];
  const char *const pins[] = {pin[0]}, *const parts[] = {pin[1]};
  memset(&m, 0, sizeof m), memset(&how, 0, sizeof how), memset(&said, 0, sizeof said);
  memset(&sim, 0, sizeof sim);
  m.bandwidth = 1, m.latency = 5, m.flops = m.memory_bw = 1e30, m.overhead = 3;
  snprintf(pin[0], sizeof pin[0], "X[0=%d]", p);
  snprintf(pin[1], sizeof pin[1], "Y[j=%d]", p);
  snprintf(text, sizeof text, "machine g=%d\nplace X, Y xy->x\n"
           "distribute([j], [jo], [ji], [g])\n", p);
  how.p = said.places = p, how.method = "given", how.machine = said.machine = sim.machine = &m;
  how.pin = pins, how.npin = how.nparts = 1, how.parts = parts, said.text = text;
  CHECK(ein_decompose(NULL, g, &how, &x) == EIN_OK);
  CHECK(ein_schedule_create(NULL, g, &said, &s) == EIN_OK);
  const double seconds = 5 + (p - 1) * 8. * (48 / p) * (48 / p) + 3;
  CHECK(ein_simulate(NULL, g, x, &sim, &info) == EIN_OK && fabs(info.seconds - seconds) < 1e-9);
  for (int k = 0; k < 2; k++) {
    ein_fabric f;
    ein_dist *d;
    ein_dist_desc desc;
    ein_dist_stats stats;
    memset(&desc, 0, sizeof desc), memset(&stats, 0, sizeof stats);
    CHECK(ein_fabric_sim(NULL, p, &m, &f) == EIN_OK);
    desc.fabric = &f;
    if (k == 0) desc.decomposition = x;
    else desc.schedule = s;
    CHECK(ein_dist_create(NULL, g, &desc, &d) == EIN_OK);
    CHECK(ein_dist_execute(d, NULL, &stats) == EIN_OK);
    CHECK(stats.messages == (int64_t)p * (p - 1) && fabs(stats.seconds - seconds) < 1e-9);
    ein_dist_destroy(d);
    ein_fabric_destroy(&f);
  }
  ein_schedule_destroy(s);
  ein_decomposition_destroy(x);
  ein_graph_destroy(g);
}

static ein_graph *parse_in(ein_ctx *ctx, const char *text) {
  ein_program_desc d;
  ein_graph *g = NULL;
  memset(&d, 0, sizeof d);
  d.text = text;
  if (ein_graph_parse(ctx, &d, &g) != EIN_OK) failures++;
  return g;
}

// Tensors of terabytes take no memory, and seconds are those of the machine.
static void test_terabytes(void) {
  ein_graph *g = parse_in(NULL, "input A[m=1048576,k=1048576], B[k,n=1048576] : f64\n"
                                "C[i,j] = A[i,k] * B[k,j]\nD[i] = max[j](C[i,j])\noutput D\n");
  ein_decompose_desc how;
  ein_decomposition *d;
  memset(&how, 0, sizeof how);
  how.p = 64;
  how.cost = EIN_COST_SECONDS;
  CHECK(ein_decompose(NULL, g, &how, &d) == EIN_OK);
  counter count = {0, -1, 0};
  ein_ctx *ctx = test_ctx(1, &count);
  ein_fabric f;
  ein_dist *plan;
  ein_dist_desc desc;
  ein_dist_info info;
  ein_dist_stats stats;
  memset(&desc, 0, sizeof desc);
  memset(&stats, 0, sizeof stats);
  CHECK(ein_fabric_sim(ctx, 64, NULL, &f) == EIN_OK);
  desc.fabric = &f;
  desc.decomposition = d;
  CHECK(ein_dist_create(ctx, g, &desc, &plan) == EIN_OK);
  CHECK(ein_dist_execute(plan, NULL, &stats) == EIN_OK);
  CHECK(ein_dist_info_get(plan, &info) == EIN_OK);
  CHECK(info.place_bytes > 100000000000 && info.workspace_bytes + info.plan_bytes < 1000000);
  // 2^60 multiplications and additions by 64 places of 1e11 a second
  const double least = 2 * 1152921504606846976. / 64 / 1e11;
  CHECK(stats.seconds > least && stats.seconds < 1.1 * least);
  ein_dist_destroy(plan);
  ein_fabric_destroy(&f);
  ein_ctx_destroy(ctx);
  ein_decomposition_destroy(d);
  ein_graph_destroy(g);
}

// Clocks that are not sane, and what has no data.
static void test_clock_refused(void) {
  ein_machine m;
  ein_fabric f;
  memset(&m, 0, sizeof m);
  m.bandwidth = -1;
  CHECK(ein_fabric_sim(NULL, 4, &m, &f) == EIN_ERR_ARGUMENT && f.name == NULL);
  CHECK(ein_fabric_sim(NULL, 0, NULL, &f) == EIN_ERR_ARGUMENT);
  CHECK(ein_fabric_sim(NULL, 4, NULL, NULL) == EIN_ERR_ARGUMENT);
  CHECK(ein_fabric_sim(NULL, 4, NULL, &f) == EIN_OK);
  ein_grid *grid;
  ein_distribution *how;
  ein_dtensor *t;
  const int64_t shape[1] = {8};
  CHECK(ein_grid_create(NULL, "x=4", 4, &grid) == EIN_OK);
  CHECK(ein_distribution_create(NULL, "x->x", 1, grid, &how) == EIN_OK);
  CHECK(ein_dtensor_create(NULL, &f, how, EIN_F32, shape, 0, NULL, &t) == EIN_ERR_UNSUPPORTED);
  ein_distribution_destroy(how);
  ein_grid_destroy(grid);
  ein_graph *g = parse_in(NULL, "input A[m=8]\nB[i] = A[i] + 1\noutput B\n");
  ein_dist_desc desc;
  ein_dist *d;
  memset(&desc, 0, sizeof desc);
  desc.fabric = &f;
  f.count = 2;
  CHECK(ein_dist_create(NULL, g, &desc, &d) == EIN_ERR_ARGUMENT && d == NULL);
  f.count = 4;
  f.next_fn = NULL;
  CHECK(ein_dist_create(NULL, g, &desc, &d) == EIN_ERR_ARGUMENT && d == NULL);
  ein_graph_destroy(g);
  ein_fabric_destroy(&f);
}

static void test_random(int count, uint64_t seed, int only) {
  static const int places[] = {1, 2, 3, 4, 6, 12, 5, 8, 16, 7};
  static cuts c;
  int done = 0;
  ein_ctx *ctx = test_ctx(4, NULL), *own = monoid_ctx();
  for (int n = 0; n < count; n++) {
    if (only >= 0 && n != only) continue;
    rng_state = seed * 1000003 + (uint64_t)n;
    ein_graph *g = random_graph(own, (int)draw(1, 8));
    if (g == NULL || g->nstmt > MAX_STMTS) {
      ein_graph_destroy(g);
      continue;
    }
    values v;
    values_make(g, seed + (uint64_t)n, &v);
    int p = places[draw(0, 9)];
    random_cuts(g, p, &c);
    test_case(n, p, g, &c, &v, ctx);
    double predicted = 0, peak[16];
    ein_inputs inputs = n % 2 == 0 ? EIN_INPUTS_HELD : EIN_INPUTS_OUTSIDE;
    if (n % 3 == 0 && best_cuts(g, p, inputs, &c, &predicted, peak)) {
      long before = total_bytes;
      test_case(n, p, g, &c, &v, ctx);
      checks++;
      int empty = 0;  // a scalar that no point reads: the model counts it, nothing moves
      for (int k = 0; k < g->nstmt; k++)
        empty |= orc_empty(g->stmt[k].index, 0, g->stmt[k].nindex);
      if (!empty) test_peaks(n, p, g, &c, inputs, peak);
      if (!empty && predicted != (double)(total_bytes - before)) {
        printf("predicted %.0f bytes, %ld\n", predicted, total_bytes - before);
        report(g, &c, n, p, "the model of bytes is wrong");
      }
    }
    values_free(g, &v);
    ein_graph_destroy(g);
    done++;
  }
  printf("  %d graphs, %ld cut statements, %ld bytes, %ld bound by blocks, %ld not boxes\n", done,
         total_partial, total_bytes, blocks_bound, blocks_refused);
  CHECK(blocks_bound > blocks_refused && blocks_refused > 0);
  CHECK(only >= 0 || done > count / 3);
  ein_ctx_destroy(own);
  ein_ctx_destroy(ctx);
}

// States of tasks whose values do not fit one piece, along and across; ties; index values.
static void test_states(uint64_t seed) {
  static const char text[] =
      "input X[a=5,b=173,c=211] : f32\ninput K[i=37] : i8\n"
      "A[a] = argmax[b,c](round(X[a,b,c]))\nV[a] = var[b,c](X[a,b,c]*(c+1))\n"
      "M[a] = mean[b,c](X[a,b,c] + b)\nN[b,c] = argmin[a](X[a,b,c])\n"
      "S[c] = span[a,b](X[a,b,c])\nR[c,a] = spread[b](X[a,b,c])\n"
      "T = argmax[a=5,b=173,c=211](where(c > 40, 1, 0))\nW = var[i](K[i])\n"
      "P = parity[a=5,i](a*K[i])\n"
      "Z[b] = mean[a,c](exp(X[a,b,c]))\noutput A, V, M, N, S, R, T, W, P, Z\n";
  static const int places[] = {1, 2, 5, 12, 7, 16};
  static cuts c;
  ein_ctx *ctx = test_ctx(4, NULL), *own = monoid_ctx();
  ein_graph *g = parse_in(own, text);
  values v;
  values_make(g, seed, &v);
  for (int n = 0; n < 6; n++) {
    rng_state = seed + (uint64_t)n;
    random_cuts(g, places[n], &c);
    test_case(n, places[n], g, &c, &v, ctx);
  }
  values_free(g, &v);
  ein_graph_destroy(g);
  ein_ctx_destroy(own);
  ein_ctx_destroy(ctx);
}

// NaN, infinities, zeros and subnormals are folded over places as by one.
static void test_special_values(int count) {
  static const char text[] =
      "input X[a=7,b=13,c=6] : f32\ninput Z[b,a] : f64\ninput H[a,c] : f16\n"
      "A[a] = max[b,c](X[a,b,c])\nB[b] = min[a,c](X[a,b,c])\nC[c] = argmax[b](X[0,b,c])\n"
      "D[a] = argmin[b,c](X[a,b,c])\nE[a] = logsumexp[b](Z[b,a])\nF[a,b] = sum[c](X[a,b,c])\n"
      "G[b] = any[a](Z[b,a] > 0)\nI[c] = max[a](H[a,c])\nK[a,b] = relu(Z[b,a])*F[a,b]\n"
      "L[a] = mean[b](Z[b,a])\noutput A, B, C, D, E, F, G, I, K, L\n";
  static const int places[] = {2, 5, 12, 7};
  static cuts c;
  ein_ctx *ctx = test_ctx(4, NULL), *own = monoid_ctx();
  ein_graph *g = parse_in(own, text);
  values v;
  for (int n = 0; n < count; n++) {
    values_special = 1;
    values_make(g, (uint64_t)n, &v);
    values_special = 0;
    rng_state = (uint64_t)n + 1;
    random_cuts(g, places[n % 4], &c);
    test_case(n, places[n % 4], g, &c, &v, ctx);
    values_free(g, &v);
  }
  ein_graph_destroy(g);
  ein_ctx_destroy(own);
  ein_ctx_destroy(ctx);
}

// The states of a join: value and position of an argmax, and their aggregation.
static void test_relation_states(void) {
  static const char text[] = "input X[i=2,j=6] : f64\nY[i] = argmax[j](X[i,j])\n";
  double x[12] = {1, 7, 3, 7, 0, 2, -1, -2, -9, -4, 5, 5};
  int64_t pieces[2] = {1, 3}, cut[2] = {2, 3}, key[2] = {0, 1}, y[2] = {-1, -1};
  ein_program_desc d;
  ein_graph *g;
  ein_relation *r, *z, *sum;
  ein_relation_info info;
  ein_ctx *ctx = test_ctx(1, NULL);
  memset(&d, 0, sizeof d);
  d.text = text;
  CHECK(ein_graph_parse(NULL, &d, &g) == EIN_OK);
  ein_ztensor view = dense(&g->tensor[0], x), out = dense(&g->tensor[1], y), value, at;
  CHECK(ein_relation_view(ctx, &view, pieces, &r) == EIN_OK);
  const ein_relation *rel = r;
  CHECK(ein_relation_join(ctx, g, 0, cut, &rel, NULL, NULL, NULL, &z) == EIN_OK);
  ein_relation_get(z, &info);
  CHECK(info.nstate == 2 && info.nkey == 2 && info.nblock == 6 && info.dtype == EIN_F64);
  CHECK(ein_relation_state(z, key, 0, &value) == EIN_OK && value.dtype == EIN_F64 &&
        *(double *)value.data == 7);
  CHECK(ein_relation_state(z, key, 1, &at) == EIN_OK && at.dtype == EIN_I64 &&
        *(int64_t *)at.data == 3);
  CHECK(ein_relation_state(z, key, 2, &at) == EIN_ERR_ARGUMENT);
  CHECK(ein_relation_aggregate(ctx, z, "max", &sum) == EIN_ERR_ARGUMENT && sum == NULL);
  CHECK(strstr(ein_ctx_message(ctx), "argmax") != NULL);
  CHECK(ein_relation_aggregate(ctx, z, "argmax", &sum) == EIN_OK);
  ein_relation_get(sum, &info);
  CHECK(info.nstate == 1 && info.dtype == EIN_I64);
  CHECK(ein_relation_read(sum, &out) == EIN_OK && y[0] == 1 && y[1] == 4);
  ein_relation_destroy(sum);
  ein_relation_destroy(z);
  ein_relation_destroy(r);
  ein_graph_destroy(g);
  ein_ctx_destroy(ctx);
}

// ---- what goes wrong ----------------------------------------------------------------------------

static const char attention[] =
    "input Q[s=12,d=6], K[t=10,d], V[t,e=5] : f32\n"
    "T[s,t] = sum[d](Q[s,d]*K[t,d]) / sqrt(size(d))\n"
    "C[s] = max[t](T[s,t])\n"
    "E[s,t] = exp(T[s,t] - C[s])\n"
    "S[s] = sum[t](E[s,t])\n"
    "Y[s,e] = sum[t](E[s,t] / S[s] * V[t,e])\n"
    "output Y\n";

static ein_graph *parse(const char *text) { return parse_in(NULL, text); }

static ein_status fail_at(void *user, const ein_dist_event *e) {
  const int *at = (const int *)user;
  return e->stmt == at[0] && e->place == at[1] ? EIN_ERR_UNSUPPORTED : EIN_OK;
}

static ein_fabric any_fabric(ein_ctx *ctx, int kind, int p) {
  ein_fabric f;
  memset(&f, 0, sizeof f);
  if (kind == 0) ein_fabric_serial(p, &f);
  if (kind == 1) ein_fabric_threads(p, &f);
  if (kind == 2 || kind == 3) ein_fabric_copying(ctx, p, &f);
  if (kind == 3) f.threads = 1;
  if (kind == 4) ein_fabric_sim(ctx, p, NULL, &f);
  return f;
}

// A place that fails stops the run with its status; all memory comes back; the next run is right.
static void test_failing_place(void) {
  static cuts c;
  ein_graph *g = parse(attention);
  values v;
  values_make(g, 9, &v);
  for (int kind = 0; kind < 4; kind++) {
    for (int n = 0; n < 60; n++) {
      counter count = {0, -1, 0};
      ein_ctx *ctx = test_ctx(3, &count);
      ein_fabric f = any_fabric(ctx, kind, 6);
      ein_dist_desc desc;
      ein_dist *d;
      ein_run run;
      float y[60];
      int at[2];
      rng_state = (uint64_t)n;
      random_cuts(g, 6, &c);
      at[0] = (int)draw(0, g->nstmt - 1);
      at[1] = (int)draw(0, c.parts[at[0]].ntask - 1);
      memset(&desc, 0, sizeof desc);
      memset(&run, 0, sizeof run);
      const void *in[3];
      void *out = y;
      for (int t = 0; t < 3; t++) in[t] = v.data[t];
      run.in = in;
      run.out = &out;
      desc.fabric = &f;
      desc.parts = c.parts;
      desc.event_fn = fail_at;
      desc.event_user = at;
      CHECK(ein_dist_create(ctx, g, &desc, &d) == EIN_OK);
      CHECK(ein_dist_execute(d, &run, NULL) == EIN_ERR_UNSUPPORTED);
      at[0] = -1;
      ein_dist_info info;
      ein_dist_info_get(d, &info);
      run.workspace_bytes = info.workspace_bytes;
      run.workspace = orc_alloc((int64_t)info.workspace_bytes, 1);
      long calls = count.calls;
      CHECK(ein_dist_execute(d, &run, NULL) == EIN_OK);
      CHECK(kind >= 2 || count.calls == calls);  // nothing is allocated
      CHECK(orc_compare(EIN_F32, 60, y, v.data[g->nstmt + 2], 40));
      free(run.workspace);
      ein_dist_destroy(d);
      ein_fabric_destroy(&f);
      ein_ctx_destroy(ctx);
      CHECK(count.live == 0);
    }
  }
  values_free(g, &v);
  ein_graph_destroy(g);
}

// Every allocation fails once, on every fabric.
static void test_memory(const char *text) {
  static cuts c;
  ein_graph *g = parse(text);
  values v;
  values_make(g, 9, &v);
  rng_state = 12;
  random_cuts(g, 4, &c);
  for (int kind = 0; kind < 5; kind++) {
    for (long n = 0;; n++) {
      counter count = {0, n, 0};
      ein_ctx *ctx = test_ctx(2, &count);
      ein_fabric f = any_fabric(ctx, kind, 4);
      ein_dist_info info;
      outcome r;
      memset(&r, 0, sizeof r);
      r.status = EIN_ERR_NO_MEMORY;
      if (ctx != NULL && f.places > 0) run_dist(ctx, g, &c, &f, &v, 0, &r, &info);
      ein_fabric_destroy(&f);
      ein_ctx_destroy(ctx);
      int done = r.status == EIN_OK && count.calls <= n;
      if (count.live != 0 || (r.status != EIN_OK && r.status != EIN_ERR_NO_MEMORY)) failures++;
      checks++;
      if (done && kind < 4) CHECK(right(g, &v, &r));
      outcome_free(&r);
      if (done || failures > 20) break;
    }
  }
  values_free(g, &v);
  ein_graph_destroy(g);
}

static ein_status try_parts(ein_ctx *ctx, const ein_graph *g, const cuts *c, int places) {
  ein_dist_desc desc;
  ein_fabric f;
  ein_dist *d;
  memset(&desc, 0, sizeof desc);
  ein_fabric_serial(places, &f);
  desc.fabric = &f;
  desc.parts = c->parts;
  desc.pins = c->pins;
  ein_status st = ein_dist_create(ctx, g, &desc, &d);
  CHECK(st == EIN_OK || d == NULL);
  ein_dist_destroy(d);
  return st;
}

// Where blocks cannot be bound, and what is bound wrongly.
static void test_bad_blocks(void) {
  ein_graph *g = parse("input A[i=4,j=6] : f64\nB[j,i] = A[i,j]*2\n");
  ein_graph *h = parse("input A[i=4] : f64\nB[i] = A[i]\nB[i+4] = A[i]*2\n");
  ein_ctx *ctx = test_ctx(1, NULL);
  ein_fabric f;
  ein_run run;
  ein_dist_desc desc;
  ein_dist *d;
  char said[80] = "";
  double a[2][12], b[2][12], big[24];
  const void *in[2] = {a[0], a[1]};
  void *out[2] = {b[0], b[1]};
  int64_t pin_cut[] = {2, 1}, cut[] = {1, 2}, origin[2], extent[2], n;
  int order[] = {0}, by[] = {1};
  ein_parts pins[2], part;
  const int64_t wide[] = {8, 1};
  ein_ztensor view = ein_tensor(EIN_F64, 2, g->tensor[0].shape, NULL);
  const ein_binding layout = {"A", &view};
  memset(&run, 0, sizeof run);
  memset(&desc, 0, sizeof desc);
  memset(pins, 0, sizeof pins);
  memset(&part, 0, sizeof part);
  pins[0].nindex = part.nindex = 2;
  pins[0].ntask = part.ntask = 2;
  pins[0].norder = part.norder = 1;
  pins[0].cut = pin_cut;
  pins[0].order = order;
  part.cut = cut;
  part.order = by;
  desc.fabric = &f;
  desc.parts = &part;
  desc.pins = pins;
  desc.blocks = 1;
  CHECK(ein_fabric_serial(2, &f) == EIN_OK);
  CHECK(ein_dist_create(ctx, g, &desc, &d) == EIN_ERR_UNSUPPORTED && d == NULL);
  CHECK(strstr(ein_ctx_message(ctx), "share memory") != NULL);
  CHECK(ein_fabric_copying(NULL, 2, &f) == EIN_OK);
  desc.nlayout = 1;
  desc.layout = &layout;
  view.strides = wide;
  CHECK(ein_dist_create(ctx, g, &desc, &d) == EIN_ERR_UNSUPPORTED && d == NULL);
  CHECK(strstr(ein_ctx_message(ctx), "layout") != NULL);
  desc.nlayout = 0;
  desc.parts = NULL;
  desc.pins = NULL;
  CHECK(ein_dist_create(ctx, h, &desc, &d) == EIN_ERR_UNSUPPORTED && d == NULL);
  CHECK(strstr(ein_ctx_message(ctx), "'B'") != NULL);
  desc.parts = &part;
  desc.pins = pins;
  CHECK(ein_dist_create(ctx, g, &desc, &d) == EIN_OK);
  CHECK(ein_dist_block(d, 2, 0, NULL, NULL, &n) == EIN_ERR_ARGUMENT);
  CHECK(ein_dist_block(d, 0, 2, NULL, NULL, &n) == EIN_ERR_ARGUMENT);
  CHECK(ein_dist_block(NULL, 0, 0, NULL, NULL, &n) == EIN_ERR_ARGUMENT);
  CHECK(ein_dist_block(d, 1, 1, origin, extent, &n) == EIN_OK && n == 12);
  const int first = origin[0] == 0;  // the order of statement indices is the library's to choose
  CHECK(extent[0] * extent[1] == 12 && origin[first ? 1 : 0] > 0);
  run.in = in;
  run.out = out;
  run.error = said;
  run.error_bytes = sizeof said;
  out[1] = NULL;
  CHECK(ein_dist_execute(d, &run, NULL) == EIN_ERR_ARGUMENT && strstr(said, "'B'") != NULL);
  out[1] = big + 8;
  out[0] = big;
  CHECK(ein_dist_execute(d, &run, NULL) == EIN_ERR_OVERLAP);
  out[1] = a[0] + 4;
  CHECK(ein_dist_execute(d, &run, NULL) == EIN_ERR_OVERLAP);
  out[1] = b[1];
  for (int i = 0; i < 24; i++) a[i / 12][i % 12] = i;
  CHECK(ein_dist_execute(d, &run, NULL) == EIN_OK);
  ein_dist_destroy(d);
  ein_fabric_destroy(&f);
  ein_graph_destroy(g);
  ein_graph_destroy(h);
  ein_ctx_destroy(ctx);
}

// Parts that contradict the graph or each other: the message names statement and index.
static void test_bad_parts(void) {
  static cuts c;
  ein_graph *g = parse(attention), *h = parse("input X[5] : f64\nY = argmax[i](X[i])\n");
  ein_ctx *ctx = test_ctx(1, NULL);
  ein_fabric f;
  ein_run run;
  rng_state = 1;
  random_cuts(g, 1, &c);
  CHECK(try_parts(ctx, g, &c, 1) == EIN_OK);
  c.cut[1][1] = 11;
  CHECK(try_parts(ctx, g, &c, 16) == EIN_ERR_ARGUMENT);
  CHECK(strstr(ein_ctx_message(ctx), "statement 1") != NULL &&
        strstr(ein_ctx_message(ctx), "index 't'") != NULL);
  c.cut[1][1] = 2;
  CHECK(try_parts(ctx, g, &c, 16) == EIN_ERR_ARGUMENT);  // not in the order
  c.order[1][0] = 1;
  c.parts[1].norder = 1;
  CHECK(try_parts(ctx, g, &c, 16) == EIN_ERR_ARGUMENT);  // ntask
  CHECK(strstr(ein_ctx_message(ctx), "ntask") != NULL);
  c.parts[1].ntask = 2;
  CHECK(try_parts(ctx, g, &c, 16) == EIN_OK);
  CHECK(try_parts(ctx, g, &c, 1) == EIN_ERR_ARGUMENT);   // more tasks than places
  c.order[1][0] = 0;
  CHECK(try_parts(ctx, g, &c, 16) == EIN_ERR_ARGUMENT);
  c.order[1][0] = 9;
  CHECK(try_parts(ctx, g, &c, 16) == EIN_ERR_ARGUMENT);
  c.parts[1].nindex = 1;
  CHECK(try_parts(ctx, g, &c, 16) == EIN_ERR_ARGUMENT);
  rng_state = 1;
  random_cuts(h, 1, &c);
  c.cut[0][0] = 2;
  c.parts[0].norder = 1;
  c.parts[0].ntask = 2;
  CHECK(try_parts(ctx, h, &c, 2) == EIN_OK);             // argmax is cut, too
  c.cut[0][0] = 7;
  CHECK(try_parts(ctx, h, &c, 8) == EIN_ERR_ARGUMENT);   // but not finer than its extent
  CHECK(strstr(ein_ctx_message(ctx), "index 'i'") != NULL);
  rng_state = 1;
  random_cuts(h, 1, &c);
  for (int t = 0; t < h->ntensor; t++) c.pins[t].ntask = 0;
  c.pins[0].nindex = 1;
  c.pins[0].cut = c.pin_cut[0];
  c.pins[0].order = c.pin_order[0];
  c.pins[0].ntask = c.pin_cut[0][0] = 6;
  c.pins[0].norder = 1;
  c.pin_order[0][0] = 0;
  CHECK(try_parts(ctx, h, &c, 8) == EIN_ERR_ARGUMENT);   // nor is what an input is held in
  c.pins[0].ntask = c.pin_cut[0][0] = 5;
  CHECK(try_parts(ctx, h, &c, 4) == EIN_ERR_ARGUMENT);
  CHECK(try_parts(ctx, h, &c, 8) == EIN_OK);
  CHECK(ein_fabric_serial(0, &f) == EIN_ERR_ARGUMENT && ein_fabric_threads(-1, &f) != EIN_OK);
  CHECK(ein_fabric_serial(EIN_PLACES_MAX + 1, &f) == EIN_ERR_ARGUMENT);
  ein_dist *d;
  double x[6] = {0};
  int64_t y;
  const void *in = x;
  void *out = x + 1;
  memset(&run, 0, sizeof run);
  run.in = &in;
  run.out = &out;
  CHECK(ein_dist_create(ctx, h, NULL, &d) == EIN_OK);    // one place, nothing cut
  CHECK(ein_dist_execute(d, &run, NULL) == EIN_ERR_OVERLAP);
  out = NULL;
  CHECK(ein_dist_execute(d, &run, NULL) == EIN_ERR_ARGUMENT);
  out = &y;
  x[3] = 2;
  CHECK(ein_dist_execute(d, &run, NULL) == EIN_OK && y == 3);
  ein_dist_destroy(d);
  ein_dist_destroy(NULL);
  ein_fabric_destroy(NULL);
  ein_ctx_destroy(ctx);
  ein_graph_destroy(g);
  ein_graph_destroy(h);
}

// Statements that look alike share the plans of their blocks.
static void test_shared_plans(void) {
  ein_graph *g = parse("input A[9] : f64\nB[i] = A[i]+1\nC[i] = B[i]+1\nD[i] = C[i]+2\n"
                       "E[i] = C[8-i]+1\noutput B, D, E\n");
  for (int kind = 0; kind < 4; kind++) {
    static cuts c;
    ein_ctx *ctx = test_ctx(2, NULL);
    ein_fabric f = any_fabric(ctx, kind, 4);
    values v;
    outcome r;
    ein_dist_info info;
    values_make(g, 3, &v);
    memset(&c, 0, sizeof c);
    for (int k = 0; k < 4; k++) {
      c.cut[k][0] = 2 + k % 2;
      c.parts[k].nindex = c.parts[k].norder = 1;
      c.parts[k].cut = c.cut[k];
      c.parts[k].order = c.order[k];
      c.parts[k].ntask = c.cut[k][0];
    }
    run_dist(ctx, g, &c, &f, &v, 0, &r, &info);
    // Lengths 4 and 5 of B and of D, 3 of C and of E.
    CHECK(right(g, &v, &r) && info.nplan == 6);
    outcome_free(&r);
    values_free(g, &v);
    ein_fabric_destroy(&f);
    ein_ctx_destroy(ctx);
  }
  ein_graph_destroy(g);
  g = parse("input A[9] : f64\nB[i] = A[i]+1\nC[i] = B[i]+1\nD[i] = C[i]+1\noutput D\n");
  ein_dist *d;
  ein_dist_info info;
  memset(&info, 0, sizeof info);
  CHECK(ein_dist_create(NULL, g, NULL, &d) == EIN_OK);
  ein_dist_info_get(d, &info);
  CHECK(info.nplan == 1 && info.tasks == 3);
  ein_dist_destroy(d);
  ein_graph_destroy(g);
}

// So do those that are written in other names and another order.
static void test_shared_spellings(void) {
  static const struct { const char *text; int last[4]; } as[] = {  // last: cut, too
      {"U[i,k] = sum[j,l](C[i,j,l]*D[l,k])\nV[i] = max[j,l](T[i,j]-2*U[i,l])\n"
       "W[i] = max[j,l](U[i,j]-2*T[i,l])\n", {3, 3, 1, 1}},
      {"U[x,z] = sum[p,q](D[p,z]*C[x,q,p])\nV[i] = max[j,l](T[i,j]-2*U[i,l])\n"
       "W[x] = max[q,p](U[x,p]-T[x,q]*2)\n", {3, 2, 1, 2}}};
  for (int kind = 0; kind < 4; kind++) {
    int plans[2] = {0, 0};
    for (int k = 0; k < 2; k++) {
      static cuts c;
      char text[512];
      snprintf(text, sizeof text, "input A[6,5,4], B[4,5], C[6,5,4], D[4,5] : f64\n"
               "T[i,k] = sum[j,l](A[i,j,l]*B[l,k])\n%soutput T, V, W\n", as[k].text);
      ein_graph *g = parse(text);
      ein_ctx *ctx = test_ctx(2, NULL);
      ein_fabric f = any_fabric(ctx, kind, 6);
      values v;
      outcome r;
      ein_dist_info info;
      values_make(g, 3, &v);
      memset(&c, 0, sizeof c);
      for (int s = 0; s < 4; s++) {
        for (int i = 0; i < g->stmt[s].nindex; i++) c.cut[s][i] = 1;
        c.cut[s][0] = 3;
        c.cut[s][as[k].last[s]] = 2;
        c.order[s][1] = as[k].last[s];
        c.parts[s].nindex = g->stmt[s].nindex;
        c.parts[s].norder = 2;
        c.parts[s].cut = c.cut[s];
        c.parts[s].order = c.order[s];
        c.parts[s].ntask = 6;
      }
      run_dist(ctx, g, &c, &f, &v, 0, &r, &info);
      CHECK(right(g, &v, &r));
      plans[k] = info.nplan;
      outcome_free(&r);
      values_free(g, &v);
      ein_fabric_destroy(&f);
      ein_ctx_destroy(ctx);
      ein_graph_destroy(g);
    }
    CHECK(plans[0] > 0 && plans[0] == plans[1]);
    if (plans[0] != plans[1]) printf("  %d and %d plans\n", plans[0], plans[1]);
  }
}

// The decompositions of ein_decompose, under every model: bytes as predicted, results right.
static void test_decompositions(void) {
  ein_graph *g = parse(attention);
  values v;
  ein_ctx *ctx = test_ctx(2, NULL);
  values_make(g, 4, &v);
  for (int p = 1; p <= 12; p++) {
    for (int cost = 0; cost < EIN_COST_COUNT; cost++) {
      ein_decompose_desc dd;
      ein_decomposition *how;
      memset(&dd, 0, sizeof dd);
      static const char *const pin[] = {"K[t=2]"};
      dd.p = p;
      dd.cost = (ein_cost)cost;
      dd.npin = p > 1 && p % 2 == 1;
      dd.pin = pin;
      ein_status st = ein_decompose(ctx, g, &dd, &how);
      if (st == EIN_ERR_UNSUPPORTED) continue;  // a model that is not there yet
      CHECK(st == EIN_OK);
      for (int kind = 0; kind < 4 && st == EIN_OK; kind++) {
        ein_fabric f = any_fabric(ctx, kind, p);
        ein_dist_desc desc;
        ein_dist *d;
        ein_run run;
        ein_dist_stats stats;
        float y[60];
        const void *in[3];
        void *out = y;
        double bytes = 0;
        memset(&desc, 0, sizeof desc);
        memset(&run, 0, sizeof run);
        memset(&stats, 0, sizeof stats);
        for (int t = 0; t < 3; t++) in[t] = v.data[t];
        run.in = in;
        run.out = &out;
        desc.fabric = &f;
        desc.decomposition = how;
        CHECK(ein_dist_create(ctx, g, &desc, &d) == EIN_OK);
        CHECK(ein_dist_execute(d, &run, &stats) == EIN_OK);
        CHECK(orc_compare(EIN_F32, 60, y, v.data[g->nstmt + 2], 40));
        for (int k = 0; k < g->nstmt; k++) {
          ein_parts parts;
          ein_decomposition_parts(how, k, &parts);
          bytes += parts.join + parts.agg + parts.repart;
        }
        if (cost == EIN_COST_BYTES) CHECK(bytes == (double)stats.bytes);
        ein_dist_destroy(d);
        ein_fabric_destroy(&f);
      }
      ein_decomposition_destroy(how);
    }
  }
  ein_ctx_destroy(ctx);
  values_free(g, &v);
  ein_graph_destroy(g);
}

// ---- a fabric of several processes, which are threads here ------------------------------------

#define MAX_PLACES 16

typedef struct packet {
  struct packet *next;
  int from, to;
  int64_t tag;
  size_t bytes;
} packet;                    // its bytes follow

typedef struct network {
  pthread_mutex_t lock;
  pthread_cond_t change;
  packet *first;
  int places, arrived, round;
  ein_status worst, agreed;
  int64_t bytes;
} network;

typedef struct post {
  int from;
  int64_t tag;
  void *data;
  size_t bytes;
} post;

typedef struct process {     // drives one place
  network *net;
  int rank;
  post posts[4096];
  int npost, under_way;
  ein_ctx *ctx;
  const ein_graph *g;
  const cuts *c;
  const values *v;
  int fail_stmt;
  outcome r;
} process;

static ein_status net_send(void *user, int from, int to, int64_t tag, const void *data,
                           size_t bytes, ein_ticket *ticket) {
  network *n = ((process *)user)->net;
  packet *p = (packet *)orc_alloc(1, sizeof *p + bytes), **end = &n->first;
  p->from = from;
  p->to = to;
  p->tag = tag;
  p->bytes = bytes;
  memcpy(p + 1, data, bytes);
  pthread_mutex_lock(&n->lock);
  while (*end != NULL) end = &(*end)->next;
  *end = p;
  n->bytes += (int64_t)bytes;
  pthread_cond_broadcast(&n->change);
  pthread_mutex_unlock(&n->lock);
  *ticket = 0;
  return EIN_OK;
}

static ein_status net_recv(void *user, int to, int from, int64_t tag, void *data, size_t bytes,
                           ein_ticket *ticket) {
  process *me = (process *)user;
  if (to != me->rank || me->npost == 4096) return EIN_ERR_INTERNAL;
  post *p = &me->posts[me->npost++];
  p->from = from;
  p->tag = tag;
  p->data = data;
  p->bytes = bytes;
  *ticket = me->npost;
  me->under_way++;
  return EIN_OK;
}

static ein_status net_wait(void *user, ein_ticket ticket) {
  process *me = (process *)user;
  network *n = me->net;
  if (ticket == 0) return EIN_OK;
  const post *p = &me->posts[ticket - 1];
  pthread_mutex_lock(&n->lock);
  for (;;) {
    packet **at = &n->first;
    while (*at != NULL && !((*at)->to == me->rank && (*at)->from == p->from &&
                            (*at)->tag == p->tag))
      at = &(*at)->next;
    packet *found = *at;
    if (found != NULL) {
      ein_status st = found->bytes == p->bytes ? EIN_OK : EIN_ERR_INTERNAL;
      if (st == EIN_OK) memcpy(p->data, found + 1, p->bytes);
      *at = found->next;
      free(found);
      pthread_mutex_unlock(&n->lock);
      if (--me->under_way == 0) me->npost = 0;
      return st;
    }
    pthread_cond_wait(&n->change, &n->lock);
  }
}

static ein_status net_agree(void *user, ein_status *status) {
  network *n = ((process *)user)->net;
  pthread_mutex_lock(&n->lock);
  int round = n->round;
  if (*status > n->worst) n->worst = *status;
  if (++n->arrived == n->places) {
    n->agreed = n->worst;
    n->worst = EIN_OK;
    n->arrived = 0;
    n->round++;
    pthread_cond_broadcast(&n->change);
  }
  while (n->round == round) pthread_cond_wait(&n->change, &n->lock);
  *status = n->agreed;
  pthread_mutex_unlock(&n->lock);
  return EIN_OK;
}

static ein_status fail_stmt(void *user, const ein_dist_event *e) {
  return e->stmt == *(const int *)user ? EIN_ERR_EMPTY : EIN_OK;
}

static void *process_main(void *user) {
  process *me = (process *)user;
  ein_fabric f;
  ein_dist_desc desc;
  ein_dist *d;
  ein_run run;
  const void *in[MAX_TENSORS];
  int nin = 0;
  memset(&f, 0, sizeof f);
  memset(&desc, 0, sizeof desc);
  memset(&run, 0, sizeof run);
  f.name = "net";
  f.places = me->net->places;
  f.first = me->rank;
  f.count = 1;
  f.user = me;
  f.send_fn = net_send;
  f.recv_fn = net_recv;
  f.wait_fn = net_wait;
  f.agree_fn = net_agree;
  desc.fabric = &f;
  desc.parts = me->c->parts;
  desc.pins = me->c->pins;
  desc.event_fn = fail_stmt;
  desc.event_user = &me->fail_stmt;
  for (int t = 0; t < me->g->ntensor; t++) {
    if (me->g->tensor[t].role == EIN_ROLE_INPUT) in[nin++] = me->v->data[t];
    if (me->g->tensor[t].role == EIN_ROLE_OUTPUT)
      me->r.out[me->r.nout++] = orc_alloc(orc_count(&me->g->tensor[t]), 16);
  }
  run.in = in;
  run.out = me->r.out;
  me->r.status = ein_dist_create(me->ctx, me->g, &desc, &d);
  if (me->r.status == EIN_OK) me->r.status = ein_dist_execute(d, &run, &me->r.stats);
  ein_dist_destroy(d);
  return NULL;
}

// Runs the graph in p processes. The blocks every process holds are put together in *r.
static void run_processes(const ein_graph *g, const cuts *c, const values *v, int p, int fail,
                          outcome *r) {
  static process all[MAX_PLACES];
  pthread_t thread[MAX_PLACES];
  network net;
  int *home[MAX_TENSORS];
  memset(&net, 0, sizeof net);
  memset(r, 0, sizeof *r);
  memset(all, 0, sizeof all);
  net.places = p;
  pthread_mutex_init(&net.lock, NULL);
  pthread_cond_init(&net.change, NULL);
  for (int i = 0; i < p; i++) {
    all[i].net = &net;
    all[i].rank = i;
    all[i].g = g;
    all[i].c = c;
    all[i].v = v;
    all[i].fail_stmt = fail == i ? (int)(g->nstmt / 2) : -1;
    if (pthread_create(&thread[i], NULL, process_main, &all[i]) != 0) orc_die("no thread");
  }
  for (int i = 0; i < p; i++) pthread_join(thread[i], NULL);
  find_homes(g, c, home);
  for (int t = 0; t < g->ntensor; t++) {
    if (g->tensor[t].role == EIN_ROLE_OUTPUT) {
      size_t size = ein_dtype_size(g->tensor[t].dtype);
      int64_t n = orc_count(&g->tensor[t]);
      char *out = (char *)(r->out[r->nout] = orc_alloc(n, 16));
      for (int64_t e = 0; e < n && all[0].r.status == EIN_OK; e++)
        memcpy(out + (size_t)e * size,
               (const char *)all[home[t][e] < 0 ? 0 : home[t][e]].r.out[r->nout] + (size_t)e * size,
               size);
      r->nout++;
    }
    free(home[t]);
  }
  r->status = all[0].r.status;
  for (int i = 0; i < p; i++) {
    if (all[i].r.status != r->status) r->status = EIN_ERR_INTERNAL;
    r->stats.bytes += all[i].r.stats.bytes;
    r->stats.tasks += all[i].r.stats.tasks;
    outcome_free(&all[i].r);
  }
  if (r->status == EIN_OK && (net.bytes != r->stats.bytes || net.first != NULL))
    r->status = EIN_ERR_INTERNAL;
  while (net.first != NULL) {  // a run that failed may leave messages
    packet *next = net.first->next;
    free(net.first);
    net.first = next;
  }
  pthread_cond_destroy(&net.change);
  pthread_mutex_destroy(&net.lock);
}

// Every place in a process of its own: results, bytes, and one status for all when one fails.
static void test_processes(int count, uint64_t seed) {
  static cuts c;
  int done = 0, failed = 0;
  for (int n = 0; n < count; n++) {
    rng_state = seed * 7919 + (uint64_t)n;
    ein_graph *g = random_graph(NULL, (int)draw(1, 6));
    if (g == NULL) continue;
    values v;
    outcome r;
    values_make(g, seed + (uint64_t)n, &v);
    int p = (int)draw(1, 7);
    random_cuts(g, p, &c);
    run_processes(g, &c, &v, p, -1, &r);
    checks += 2;
    if (!right(g, &v, &r)) report(g, &c, n, p, "processes differ");
    outcome_free(&r);
    int at = (int)draw(0, p - 1), runs = at < (int)c.parts[g->nstmt / 2].ntask;
    run_processes(g, &c, &v, p, at, &r);
    if (r.status != (runs ? EIN_ERR_EMPTY : EIN_OK)) report(g, &c, n, p, "processes disagree");
    failed += runs;
    done++;
    outcome_free(&r);
    values_free(g, &v);
    ein_graph_destroy(g);
  }
  printf("  %d graphs in processes, %d runs with a failure\n", done, failed);
  CHECK(done > 0 && failed > 0);
}

// ---- overlap: transfers of a statement begin while the one before computes ----

typedef struct early {
  ein_fabric inner;
  int64_t tags;             // of a statement
  int blocks, posts, early;  // of statement 0 that are there; receives for statement 1: all, before
} early;

static ein_status early_send(void *user, int from, int to, int64_t tag, const void *data,
                             size_t bytes, ein_ticket *ticket) {
  early *x = (early *)user;
  return x->inner.send_fn(x->inner.user, from, to, tag, data, bytes, ticket);
}

static ein_status early_recv(void *user, int to, int from, int64_t tag, void *data, size_t bytes,
                             ein_ticket *ticket) {
  early *x = (early *)user;
  x->posts += tag / x->tags == 1;
  x->early += tag / x->tags == 1 && x->blocks < 4;
  return x->inner.recv_fn(x->inner.user, to, from, tag, data, bytes, ticket);
}

static ein_status early_wait(void *user, ein_ticket ticket) {
  early *x = (early *)user;
  return x->inner.wait_fn(x->inner.user, ticket);
}

static ein_status early_event(void *user, const ein_dist_event *e) {
  ((early *)user)->blocks += e->stmt == 0 && e->level < 0;
  return EIN_OK;
}

static void test_overlap(void) {
  static const char *const parts[] = {"T[i=4]", "U[l=4]"};
  static const char *const pin[] = {"A[j=4]", "B[k=4]", "C[k=4]"};
  ein_graph *g = parse("input A[i=8,j=8], B[j,k=8], C[k,l=8] : f64\n"
                       "T[i,k] = sum[j](A[i,j]*B[j,k])\nU[i,l] = sum[k](T[i,k]*C[k,l])\n"
                       "output U\n");
  ein_decompose_desc dd;
  ein_decomposition *how = NULL;
  values v;
  double u[64];
  memset(&dd, 0, sizeof dd);
  dd.p = 4, dd.cost = EIN_COST_BYTES, dd.method = "given";
  dd.parts = parts, dd.nparts = 2, dd.pin = pin, dd.npin = 3;
  CHECK(ein_decompose(NULL, g, &dd, &how) == EIN_OK);
  values_make(g, 3, &v);
  for (int none = 0; none < 2; none++) {
    early x;
    ein_fabric f;
    ein_dist_desc desc;
    ein_dist *d = NULL;
    ein_run run;
    const void *in[3];
    void *out[1];
    memset(&x, 0, sizeof x), memset(&desc, 0, sizeof desc), memset(&run, 0, sizeof run);
    CHECK(ein_fabric_copying(NULL, 4, &x.inner) == EIN_OK);
    f = x.inner;
    f.user = &x, f.send_fn = early_send, f.recv_fn = early_recv, f.wait_fn = early_wait;
    f.test_fn = NULL, f.destroy_fn = NULL;
    desc.fabric = &f, desc.decomposition = how, desc.no_overlap = none;
    desc.event_fn = early_event, desc.event_user = &x;
    for (int t = 0; t < 3; t++) in[t] = v.data[t];
    out[0] = u;
    run.in = in, run.out = out;
    CHECK(ein_dist_create(NULL, g, &desc, &d) == EIN_OK);
    x.tags = d->tags;
    CHECK(ein_dist_execute(d, &run, NULL) == EIN_OK);
    CHECK(orc_compare(EIN_F64, 64, u, v.data[4], 40) && x.blocks == 4);
    CHECK(x.posts > 0 && x.early == (none ? 0 : x.posts));
    ein_dist_destroy(d);
    ein_fabric_destroy(&x.inner);
  }
  ein_decomposition_destroy(how);
  values_free(g, &v);
  ein_graph_destroy(g);
}

int main(int argc, char **argv) {
  int count = argc > 1 ? atoi(argv[1]) : FEW(400);
  uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  printf("seed %llu\n", (unsigned long long)seed);
  test_relation_example();
  test_relation_product();
  test_relation_memory();
  test_bad_parts();
  test_bad_blocks();
  test_failing_place();
  test_overlap();
  test_memory(attention);
  test_memory("input X[s=6,t=8] : f32\nA[s] = argmax[t](X[s,t])\nM[s] = mean[t](X[s,t])\n"
              "V = var[s,t](X[s,t]-M[s])\noutput A, V\n");
  test_relation_states();
  test_special_values(FEW(60));
  test_states(seed);
  test_shared_plans();
  test_shared_spellings();
  test_decompositions();
  int only = argc > 3 ? atoi(argv[3]) : -1;
  if (only < 0) test_relation_random(count, seed);
  test_random(count, seed, only);
  if (only < 0) test_processes(count / 4 + 1, seed);
  if (only < 0) test_messages(count, seed);
  for (int p = 2; p <= 16 && only < 0; p *= 2) test_all_to_all(p);
  if (only < 0) test_clock(count, seed);
  if (only < 0) test_terabytes();
  if (only < 0) test_clock_refused();
  if (failures == 0) printf("ok %d checks\n", checks);
  else printf("%d of %d checks failed\n", failures, checks);
  return failures != 0;
}
