// einsum_dist.h - v0.1.0 - tensor relations and execution on many places - MIT license
// SPDX-License-Identifier: MIT
//
// Do this in exactly one C or C++ file, and include the headers plainly everywhere else:
//
//     #define EINSUM_IMPLEMENTATION
//     #include "einsum.h"
//     #include "einsum_dist.h"
//
//
// CONTENTS (search for >>name)
//
// Manual: TENSOR RELATIONS, PLACES, EXECUTION, FABRICS, BYTES, MEMORY, DETERMINISM, FAILURES
//
//   >>dist-api        public types and functions
//   >>space           pieces, places and blocks of a cut index space
//   >>block-plans     plans of a statement's blocks
//   >>relation        tensor relations: join, aggregate, repartition
//
//
// TENSOR RELATIONS
//
// A tensor relation is a map from keys to blocks of a tensor: the pieces of its axes number the
// blocks (EinDecomp, section 5). ein_relation_view makes one of a tensor without copying. A join
// runs a statement, or a function of yours, on every combination of pieces of the statement's
// indices; where an access needs more than one block (a halo, another partition), the box is put
// together first. Reduced indices that are cut stay in the keys of the result, whose blocks are
// partial then, until ein_relation_aggregate folds them. ein_relation_repartition cuts differently.
//
//     X[8,8] cut [2,4], Y[8,8] cut [4,2]      ->  join of sum[j](X[i,j]*Y[j,k]), (i,k | j) = (2,2|4)
//     keys (i,k | j), 16 blocks of 4x4        ->  aggregate: keys (i,k), 4 blocks of 4x4
//

#if !defined(EINSUM_H) || \
    (defined(EINSUM_IMPLEMENTATION) && !defined(EINSUM_IMPLEMENTATION_DONE))
#include "einsum.h"
#endif

#ifndef EINSUM_DIST_H
#define EINSUM_DIST_H

#ifdef __cplusplus
extern "C" {
#endif

// ================================================================================================
// >>dist-api  public types and functions
// Every fallible call returns an ein_status. With a ctx, the messages are in ein_ctx_error.
// ================================================================================================

#ifndef EINSUM_DECOMP_H
// How one statement's index space is cut; borrowed from the decomposition.
typedef struct ein_parts {
  int nindex;               // indices of the statement, free ones first (its own order)
  const int64_t *cut;       // pieces of each index, >= 1 and <= max(1, extent)
  int norder;               // cut indices (pieces > 1)
  const int *order;         // them, most significant digit first: the rule of placement
  int64_t ntask;            // product of cut, <= p
  double join, agg, repart, seconds;  // cost terms under the chosen model; seconds: 0 if unknown
} ein_parts;
#endif

// ---- tensor relations ---------------------------------------------------------------------------

// Immutable once made; read by any number of threads.
typedef struct ein_relation ein_relation;

typedef struct ein_relation_info {
  ein_dtype dtype;          // of the blocks
  int rank;                 // axes of the tensor
  const int64_t *bound;     // its extents
  int nkey;                 // rank, and the cut reduced indices not yet aggregated
  const int64_t *pieces;    // nkey: the partition; piece k of d of an extent E is
                            //   [floor(k*E/d), floor((k+1)*E/d))
  int64_t nblock;           // product of pieces
} ein_relation_info;

// What a join runs on the blocks of one key instead of the statement: in[k] is the block operand k
// reads, out the block to write; origin[i] is the first value of the statement's index i, and
// extent[i] how many there are. A status other than EIN_OK ends the join with it.
typedef ein_status (*ein_block_fn)(void *user, const int64_t *origin, const int64_t *extent,
                                   const ein_ztensor *in, const ein_ztensor *out);

// The relation of a tensor cut into pieces[r] pieces along axis r (1 .. max(1, extent)). Its blocks
// are views: the memory stays the caller's and must outlive the relation. *r is NULL on failure:
// EIN_ERR_SHAPE for pieces, what ein_view_check says of the view.
EIN_API ein_status ein_relation_view(ein_ctx *ctx, const ein_ztensor *view, const int64_t *pieces,
                                     ein_relation **r);
EIN_API void ein_relation_destroy(ein_relation *r);  // NULL is a no-op
EIN_API void ein_relation_get(const ein_relation *r, ein_relation_info *info);
// The block of a key (nkey piece numbers): a view borrowed from the relation, and where it begins
// in the tensor (rank coordinates; origin may be NULL). EIN_ERR_BOUNDS when there is no such key.
EIN_API ein_status ein_relation_block(const ein_relation *r, const int64_t *key,
                                      ein_ztensor *block, int64_t *origin);
// Writes the whole tensor. out: shape and dtype of the relation. EIN_ERR_ARGUMENT before what was
// cut over reduced indices is aggregated.
EIN_API ein_status ein_relation_read(const ein_relation *r, const ein_ztensor *out);

// Joins relations on the keys of statement stmt of a graph, whose index i is cut into cut[i] pieces
// (nindex of them): rel[k] holds operand k's tensor. The statement's free indices must be the axes
// of its output in order. fn NULL: the statement itself runs on the blocks; param: its params.
// Folds that are cut must be sum, prod, max, min, any, all or logsumexp, unless fn does the work.
EIN_API ein_status ein_relation_join(ein_ctx *ctx, const ein_graph *graph, int stmt,
                                     const int64_t *cut, const ein_relation *const *rel,
                                     const ein_scalar *param, ein_block_fn fn, void *user,
                                     ein_relation **out);
// Folds the blocks that differ only in keys of reduced indices, element by element, with a monoid:
// "sum", .., or one registered in the ctx. The result has the dtype the join's statement gives.
EIN_API ein_status ein_relation_aggregate(ein_ctx *ctx, const ein_relation *r, const char *monoid,
                                          ein_relation **out);
// The same tensor in another partition; blocks are copies.
EIN_API ein_status ein_relation_repartition(ein_ctx *ctx, const ein_relation *r,
                                            const int64_t *pieces, ein_relation **out);

#ifdef __cplusplus
}
#endif
#endif  // EINSUM_DIST_H

#if defined(EINSUM_IMPLEMENTATION) && !defined(EINSUM_DIST_IMPLEMENTATION_DONE)
#define EINSUM_DIST_IMPLEMENTATION_DONE

// ================================================================================================
// >>space  pieces, places and blocks of a cut index space
// Takes a statement's indices, its cuts and their order; gives ranges and boxes of a task by rules.
// ================================================================================================

#define EINI_CUTS_MAX 32       // cut indices: each has two pieces or more

// An index space cut for places: a statement's, or that of an input held in a partition. Its task
// number q runs at place q.
typedef struct eini_dist_space {
  int nindex, nfree;
  const int64_t *extent, *cut;  // nindex each
  const int64_t *weight;        // nindex: what one piece more adds to the place; 0: not cut
  int ncut, index[EINI_CUTS_MAX];  // the cut indices
  int64_t ntask, nagg;          // tasks; those that share a block of the output
  const ein_zmap *map;          // from indices to coordinates of the tensor it defines
  int whole;                    // 1: the only block is all of the tensor
  int separable;                // 1: every index occurs in at most one coordinate
} eini_dist_space;

// Where piece k of `cut` begins: floor(k*extent/cut); k up to cut, which fits 31 bits.
static int64_t eini_dist_start(int64_t extent, int64_t cut, int64_t k) {
  return extent / cut * k + extent % cut * k / cut;
}

static int64_t eini_dist_digit(const eini_dist_space *x, int64_t place, int i) {
  return x->cut[i] > 1 ? place / x->weight[i] % x->cut[i] : 0;
}

// The task's ranges of all indices.
static void eini_dist_range(const eini_dist_space *x, int64_t place, int64_t *lo, int64_t *hi) {
  for (int i = 0; i < x->nindex; i++) {
    int64_t k = eini_dist_digit(x, place, i);
    lo[i] = eini_dist_start(x->extent[i], x->cut[i], k);
    hi[i] = eini_dist_start(x->extent[i], x->cut[i], k + 1);
  }
}

// The smallest box [from, to) that holds the image of index ranges; empty without points.
static void eini_dist_hull(const ein_zmap *m, const int64_t *lo, const int64_t *hi, int64_t *from,
                           int64_t *to) {
  ein_zrange y;
  y.rank = m->rows;
  y.start = from;
  y.end = to;
  // Every access was proved to stay inside a tensor, so nothing wraps.
  if (eini_zmap_image(m, m->cols, lo, hi, &y) == EIN_OK) return;
  for (int r = 0; r < m->rows; r++) from[r] = to[r] = 0;
}

static int64_t eini_dist_volume(int rank, const int64_t *from, const int64_t *to) {
  int64_t n = 1;
  for (int r = 0; r < rank; r++) n *= eini_max64(to[r] - from[r], 0);
  return n;
}

// Number of the partial result a task computes: the pieces of cut reduced indices, row-major.
static int64_t eini_dist_partial(const eini_dist_space *x, int64_t place) {
  int64_t n = 0;
  for (int i = x->nfree; i < x->nindex; i++)
    if (x->cut[i] > 1) n = n * x->cut[i] + eini_dist_digit(x, place, i);
  return n;
}

// The place of partial number k of the block at `place`.
static int64_t eini_dist_partner(const eini_dist_space *x, int64_t place, int64_t k) {
  for (int i = x->nindex - 1; i >= x->nfree; i--) {
    if (x->cut[i] <= 1) continue;
    place += (k % x->cut[i] - eini_dist_digit(x, place, i)) * x->weight[i];
    k /= x->cut[i];
  }
  return place;
}

static int eini_zmap_equal(const ein_zmap *a, const ein_zmap *b) {
  size_t rows = (size_t)a->rows, cells = rows * (size_t)a->cols;
  return a->rows == b->rows && a->cols == b->cols &&
         (cells == 0 || memcmp(a->coef, b->coef, cells * sizeof *a->coef) == 0) &&
         (rows == 0 || memcmp(a->offset, b->offset, rows * sizeof *a->offset) == 0);
}

// The first operand that reads what operand k reads: the same tensor by the same projection.
static int eini_dist_first(const eini_stmt *s, int k) {
  for (int j = 0; j < k; j++)
    if (s->operand[j] == s->operand[k] && eini_zmap_equal(&s->proj[j], &s->proj[k])) return j;
  return k;
}

// ---- copies of boxes ----

// dst[i] = src[i] for i < shape, strides in elements of `size` bytes.
static void eini_dist_copy(int rank, const int64_t *shape, char *dst, const int64_t *dst_stride,
                           const char *src, const int64_t *src_stride, size_t size) {
  if (rank == 0) {
    memcpy(dst, src, size);
    return;
  }
  int64_t n = shape[0], a = dst_stride[0] * (int64_t)size, b = src_stride[0] * (int64_t)size;
  if (rank == 1 && dst_stride[0] == 1 && src_stride[0] == 1) {
    if (n > 0) memcpy(dst, src, (size_t)n * size);
    return;
  }
  for (int64_t i = 0; i < n; i++)
    eini_dist_copy(rank - 1, shape + 1, dst + i * a, dst_stride + 1, src + i * b, src_stride + 1,
                   size);
}

static void eini_dist_dense(int rank, const int64_t *shape, int64_t *stride) {
  int64_t n = 1;
  for (int r = rank - 1; r >= 0; r--) {
    stride[r] = n;
    n *= eini_max64(shape[r], 1);
  }
}

// ================================================================================================
// >>block-plans  plans of a statement's blocks
// Takes a statement and the shape of a block; gives a plan of one statement over views into blocks.
// One plan serves all blocks of a shape: index values get the block's origin as params.
// ================================================================================================

// What a plan is made for. A result stored by free indices has one axis for each of them, dense;
// otherwise it is the hull of the block in the tensor.
typedef struct eini_dist_job {
  const ein_graph *g;
  const eini_stmt *s;
  const int64_t *len;            // nindex: extents of the block
  const int64_t *cut;            // nindex: only cut indices have an origin
  const int64_t *const *stride;  // per operand: strides of its view; NULL entry: dense
  const int64_t *out_stride;     // of the hull; NULL: dense
  int by_index;                  // 1: the result is stored by free indices
  int whole;                     // 1: the result is all of the tensor, zero where nothing is
  ein_dtype dtype;               // of the result
  int how;                       // of a merge: see eini_dist_merge_plan
} eini_dist_job;

typedef struct eini_dist_entry {
  int64_t *key;
  int64_t nkey;
  ein_plan *plan;
} eini_dist_entry;

// Plans by what they were made for.
typedef struct eini_dist_plans {
  eini_arena *a;                 // of keys and entries; plans have memory of their own
  ein_ctx *ctx;                  // kernels and executor of a task
  eini_dist_entry *entry;
  int64_t n, cap;
  size_t workspace;              // largest of all, bytes
  const char *path;
} eini_dist_plans;

static void eini_dist_plans_end(eini_dist_plans *l) {
  for (int64_t i = 0; i < l->n; i++) ein_plan_destroy(l->entry[i].plan);
  l->n = 0;
}

// Where in the list a key is, or -1.
static int64_t eini_dist_find(const eini_dist_plans *l, const int64_t *key, int64_t n) {
  for (int64_t i = 0; i < l->n; i++) {
    if (l->entry[i].nkey == n && memcmp(l->entry[i].key, key, (size_t)n * sizeof *key) == 0)
      return i;
  }
  return -1;
}

static ein_status eini_dist_keep(eini_dist_plans *l, const int64_t *key, int64_t n,
                                 ein_plan *plan) {
  eini_dist_entry *p = (eini_dist_entry *)eini_grow(l->a, l->entry, l->n, &l->cap, sizeof *p);
  int64_t *own = p == NULL ? NULL : EINI_NEW(l->a, int64_t, n);
  if (own == NULL) return EIN_ERR_NO_MEMORY;
  memcpy(own, key, (size_t)n * sizeof *key);
  l->entry = p;
  p += l->n++;
  p->key = own;
  p->nkey = n;
  p->plan = plan;
  if (ein_plan_workspace(plan) > l->workspace) l->workspace = ein_plan_workspace(plan);
  return EIN_OK;
}

// ---- graphs of one statement ----

// Does the value of cut index i occur in the expression? Then blocks get its origin.
static int eini_dist_uses(const eini_stmt *s, const int64_t *cut, int i) {
  for (int64_t v = 0; cut[i] > 1 && v < s->expr.n; v++)
    if (s->expr.node[v].op == EINI_OP_INDEX && s->expr.node[v].arg[0] == i) return 1;
  return 0;
}

// Copies an expression; index i becomes i + param[i] where param[i] >= 0.
static ein_status eini_dist_shift(eini_arena *a, const eini_expr *from, const int *param,
                                  eini_expr *to) {
  int *at = EINI_NEW(a, int, from->n);
  memset(to, 0, sizeof *to);
  to->list = EINI_NEW(a, int, from->nlist);
  if (at == NULL || to->list == NULL) return EIN_ERR_NO_MEMORY;
  to->nlist = to->caplist = from->nlist;
  for (int64_t i = 0; i < from->nlist; i++) to->list[i] = from->list[i];
  for (int64_t i = 0; i < from->n; i++) {
    const eini_node *v = &from->node[i];
    int id = eini_expr_add(a, to, v->op, v->pos, 0, 0, 0);
    if (id < 0) return EIN_ERR_NO_MEMORY;
    to->node[id] = *v;
    int nargs = eini_node_args(v);
    for (int k = 0; k < nargs; k++) {
      if (v->op == EINI_OP_CALL) to->list[v->arg[1] + k] = at[from->list[v->arg[1] + k]];
      else to->node[id].arg[k] = at[v->arg[k]];
    }
    at[i] = id;
    if (v->op != EINI_OP_INDEX || param[v->arg[0]] < 0) continue;
    int p = eini_expr_add(a, to, EINI_OP_PARAM, v->pos, param[v->arg[0]], 0, 0);
    int sum = p < 0 ? -1 : eini_expr_pair(a, to, EINI_OP_ADD, id, p);
    if (sum < 0) return EIN_ERR_NO_MEMORY;
    to->node[p].dtype = to->node[sum].dtype = EIN_I64;
    at[i] = sum;
  }
  return EIN_OK;
}

// A map of the block: coordinates count from the block's hull, where index 0 has the coordinate
// that falling terms leave below it.
static void eini_dist_local_map(ein_zmap *m, const int64_t *len) {
  for (int r = 0; r < m->rows; r++) {
    m->offset[r] = 0;
    for (int c = 0; c < m->cols; c++) {
      int64_t k = m->coef[(int64_t)r * m->cols + c];
      if (k < 0 && len[c] > 0) m->offset[r] -= k * (len[c] - 1);
    }
  }
}

// Extents of the hull of a map over a block.
static void eini_dist_local_shape(const ein_zmap *m, const int64_t *len, int nfree,
                                  int64_t *shape) {
  int empty = 0;
  for (int c = 0; c < nfree; c++) empty |= len[c] == 0;
  for (int r = 0; r < m->rows; r++) {
    shape[r] = !empty;
    for (int c = 0; c < nfree && !empty; c++)
      shape[r] += eini_abs64(m->coef[(int64_t)r * m->cols + c]) * (len[c] - 1);
  }
}

static ein_status eini_dist_tensor(ein_graph *g, const char *name, ein_role role, ein_dtype dtype,
                                   int rank, const int64_t *shape, int *id) {
  static const int64_t none[1] = {0};
  return eini_graph_add_tensor(g, name, (int64_t)strlen(name), role, dtype, rank,
                               rank > 0 ? shape : none, id);
}

// An empty graph with the params and registrations of another.
static ein_status eini_dist_graph(ein_ctx *ctx, const ein_graph *from, ein_graph **g) {
  *g = eini_graph_new(ctx);
  if (*g == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_graph_register(*g, from->nfunction, from->function, from->nmonoid, from->monoid));
  for (int64_t k = 0; k < from->nparam; k++) {
    const eini_param *x = &from->param[k];
    int id;
    EINI_TRY(eini_graph_add_param(*g, x->name, (int64_t)strlen(x->name), x->dtype, x->value, &id));
  }
  return EIN_OK;
}

// The result's tensor and map.
static ein_status eini_dist_result(const eini_dist_job *j, ein_graph *g, eini_stmt *like) {
  const eini_stmt *s = j->s;
  const eini_tensor *t = &j->g->tensor[s->out];
  int rank = j->by_index ? s->nfree : t->rank;
  int64_t *shape = EINI_NEW(&g->arena, int64_t, rank);
  if (shape == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_zmap_new(&g->arena, rank, s->nindex, &like->out_map));
  if (j->by_index) {
    for (int r = 0; r < rank; r++) {
      shape[r] = j->len[r];
      like->out_map.coef[(int64_t)r * s->nindex + r] = 1;
    }
  } else {
    eini_zmap_fill(&like->out_map, &s->out_map);
    eini_dist_local_shape(&s->out_map, j->len, s->nfree, shape);
    if (!j->whole) eini_dist_local_map(&like->out_map, j->len);
    for (int r = 0; r < rank && j->whole; r++) shape[r] = t->shape[r];
  }
  EINI_TRY(eini_dist_tensor(g, "y", EIN_ROLE_OUTPUT, j->dtype, rank, shape, &like->out));
  like->rest = j->whole ? s->rest : EIN_REST_ERROR;
  return EIN_OK;
}

// The operands' boxes as inputs x0, x1, ..; two that read the same are one.
static ein_status eini_dist_inputs(const eini_dist_job *j, ein_graph *g, eini_stmt *like) {
  const eini_stmt *s = j->s;
  like->operand = EINI_NEW(&g->arena, int, s->noperand);
  if (like->operand == NULL) return EIN_ERR_NO_MEMORY;
  for (int k = 0; k < s->noperand; k++) {
    const eini_tensor *t = &j->g->tensor[s->operand[k]];
    char name[24];
    int first = eini_dist_first(s, k);
    like->operand[k] = like->operand[first];
    if (first < k) continue;
    int64_t *shape = EINI_NEW(&g->arena, int64_t, t->rank);
    if (shape == NULL) return EIN_ERR_NO_MEMORY;
    eini_dist_local_shape(&s->proj[k], j->len, s->nindex, shape);
    snprintf(name, sizeof name, "x%d", k);
    EINI_TRY(eini_dist_tensor(g, name, EIN_ROLE_INPUT, t->dtype, t->rank, shape,
                              &like->operand[k]));
  }
  return EIN_OK;
}

// The statement for a block of shape len.
static ein_status eini_dist_block_stmt(const eini_dist_job *j, ein_graph *g) {
  eini_stmt like = *j->s, *s;
  static const ein_scalar none = {0, 0, 0};
  int *param = EINI_NEW(&g->arena, int, j->s->nindex);
  if (param == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < j->s->nindex; i++) {
    param[i] = -1;
    if (eini_dist_uses(j->s, j->cut, i))
      EINI_TRY(eini_graph_add_param(g, "", 0, EIN_I64, none, &param[i]));
  }
  EINI_TRY(eini_dist_inputs(j, g, &like));
  EINI_TRY(eini_dist_result(j, g, &like));
  EINI_TRY(eini_dist_shift(&g->arena, &j->s->expr, param, &like.expr));
  EINI_TRY(eini_stmt_copy(g, &like));
  s = &g->stmt[g->nstmt - 1];
  for (int i = 0; i < s->nindex; i++) s->index[i].extent = j->len[i];
  for (int k = 0; k < s->noperand; k++) eini_dist_local_map(&s->proj[k], j->len);
  return EIN_OK;
}

// Plans a graph whose tensors have the given strides (NULL: dense).
static ein_status eini_dist_plan_graph(eini_dist_plans *l, ein_graph *g,
                                       const int64_t *const *stride, ein_plan **plan) {
  ein_options o;
  memset(&o, 0, sizeof o);
  o.path = l->path;
  ein_binding *bind = EINI_NEW(&g->arena, ein_binding, g->ntensor);
  ein_ztensor *view = EINI_NEW(&g->arena, ein_ztensor, g->ntensor);
  if (bind == NULL || view == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t t = 0; t < g->ntensor; t++) {
    view[t].dtype = g->tensor[t].dtype;
    view[t].rank = g->tensor[t].rank;
    view[t].shape = g->tensor[t].shape;
    view[t].strides = stride[t];
    bind[t].name = g->tensor[t].name;
    bind[t].view = &view[t];
  }
  return ein_plan_graph(l->ctx, g, (int)g->ntensor, bind, &o, plan);
}

static ein_status eini_dist_block_build(eini_dist_plans *l, const eini_dist_job *j, ein_graph **g,
                                        ein_plan **plan) {
  EINI_TRY(eini_dist_graph(l->ctx, j->g, g));
  EINI_TRY(eini_dist_block_stmt(j, *g));
  const int64_t **stride = EINI_NEW(&(*g)->arena, const int64_t *, (*g)->ntensor);
  if (stride == NULL) return EIN_ERR_NO_MEMORY;
  int n = 0;
  for (int k = 0; k < j->s->noperand; k++)
    if (eini_dist_first(j->s, k) == k) stride[n++] = j->stride[k];
  stride[n] = j->by_index ? NULL : j->out_stride;
  return eini_dist_plan_graph(l, *g, stride, plan);
}

// ---- merging of partial results ----

// The expression that merges operands 0 and 1, partial results of a fold in its computation type.
static ein_status eini_dist_merge_expr(eini_arena *a, int fold, ein_dtype type, eini_expr *e) {
  int logic = type == EIN_BOOL;
  int x = eini_expr_add(a, e, EINI_OP_OPERAND, -1, 0, 0, 0);
  int y = eini_expr_add(a, e, EINI_OP_OPERAND, -1, 1, 0, 0), z = -1;
  switch (fold) {
    case EINI_SUM: z = eini_expr_pair(a, e, logic ? EINI_OP_OR : EINI_OP_ADD, x, y); break;
    case EINI_PROD: z = eini_expr_pair(a, e, logic ? EINI_OP_AND : EINI_OP_MUL, x, y); break;
    case EINI_MAX: z = eini_expr_pair(a, e, logic ? EINI_OP_OR : EINI_OP_MAX, x, y); break;
    case EINI_MIN: z = eini_expr_pair(a, e, logic ? EINI_OP_AND : EINI_OP_MIN, x, y); break;
    case EINI_ANY: z = eini_expr_pair(a, e, EINI_OP_OR, x, y); break;
    case EINI_ALL: z = eini_expr_pair(a, e, EINI_OP_AND, x, y); break;
    case EINI_LOGSUMEXP: {  // m + log(exp(x-m) + exp(y-m)); m alone where it is infinite
      int m = eini_expr_pair(a, e, EINI_OP_MAX, x, y);
      int u = eini_expr_pair(a, e, EINI_OP_SUB, x, m), v = eini_expr_pair(a, e, EINI_OP_SUB, y, m);
      if (m < 0 || u < 0 || v < 0) return EIN_ERR_NO_MEMORY;
      u = eini_expr_add(a, e, EINI_OP_EXP, -1, u, 0, 0);
      v = eini_expr_add(a, e, EINI_OP_EXP, -1, v, 0, 0);
      int w = eini_expr_pair(a, e, EINI_OP_ADD, u, v);
      w = w < 0 ? -1 : eini_expr_add(a, e, EINI_OP_LOG, -1, w, 0, 0);
      w = eini_expr_pair(a, e, EINI_OP_ADD, m, w);
      int size = eini_expr_add(a, e, EINI_OP_ABS, -1, m, 0, 0);
      int inf = eini_expr_real(a, e, -1, (double)INFINITY);
      int odd = eini_expr_pair(a, e, EINI_OP_EQ, size, inf);
      if (odd >= 0 && w >= 0) z = eini_expr_add(a, e, EINI_OP_WHERE, -1, odd, m, w);
      break;
    }
    default: return EIN_ERR_UNSUPPORTED;
  }
  return z < 0 ? EIN_ERR_NO_MEMORY : EIN_OK;
}

static int eini_dist_mergeable(int fold) { return fold >= EINI_SUM && fold <= EINI_LOGSUMEXP; }

// Which of the two sides of a merge live in the block of the output, by its map; the others are
// partial results by free indices, in the computation type.
enum { EINI_MERGE_FROM_OUT = 1, EINI_MERGE_TO_OUT = 2 };

// Adds the tensor of one side to the graph.
static ein_status eini_dist_side(const eini_dist_job *j, ein_graph *g, const char *name,
                                 ein_role role, int out, int *id) {
  const eini_stmt *s = j->s;
  int rank = out ? j->g->tensor[s->out].rank : s->nfree;
  ein_dtype dtype = out ? j->dtype : ein_dtype_compute(s->type);
  int64_t *shape = EINI_NEW(&g->arena, int64_t, rank);
  if (shape == NULL) return EIN_ERR_NO_MEMORY;
  if (out) eini_dist_local_shape(&s->out_map, j->len, s->nfree, shape);
  for (int r = 0; r < rank && !out; r++) shape[r] = j->len[r];
  return eini_dist_tensor(g, name, role, dtype, rank, shape, id);
}

// The map of one side: of the output, without the columns of reduced indices, or the identity.
static void eini_dist_side_map(const eini_dist_job *j, int out, ein_zmap *m) {
  const ein_zmap *from = &j->s->out_map;
  for (int r = 0; r < m->rows; r++) {
    for (int c = 0; c < m->cols; c++)
      m->coef[(int64_t)r * m->cols + c] = out ? from->coef[(int64_t)r * from->cols + c] : r == c;
  }
  eini_dist_local_map(m, j->len);
}

// out = left merged with right; left is the output itself with EINI_MERGE_FROM_OUT, and then the
// result goes there, too.
static ein_status eini_dist_merge_build(eini_dist_plans *l, const eini_dist_job *j, ein_graph **g,
                                        ein_plan **plan) {
  const int from = j->how & EINI_MERGE_FROM_OUT, to = j->how & EINI_MERGE_TO_OUT;
  const int64_t *stride[3];
  int ops[2], y;
  eini_stmt *s;
  *g = eini_graph_new(l->ctx);
  if (*g == NULL) return EIN_ERR_NO_MEMORY;
  EINI_TRY(eini_dist_side(j, *g, "a", EIN_ROLE_INPUT, from, &ops[0]));
  EINI_TRY(eini_dist_side(j, *g, "b", EIN_ROLE_INPUT, 0, &ops[1]));
  EINI_TRY(eini_dist_side(j, *g, "y", EIN_ROLE_OUTPUT, to, &y));
  EINI_TRY(eini_graph_add_stmt(*g, y, j->s->nfree, 2, ops, &s));
  for (int i = 0; i < s->nindex; i++) {
    s->index[i].name = "";
    s->index[i].extent = j->len[i];
  }
  eini_dist_side_map(j, from, &s->proj[0]);
  eini_dist_side_map(j, 0, &s->proj[1]);
  eini_dist_side_map(j, to, &s->out_map);
  EINI_TRY(eini_dist_merge_expr(&(*g)->arena, j->s->fold, ein_dtype_compute(j->s->type),
                                &s->expr));
  EINI_TRY(eini_stmt_finish(*g, s, NULL));
  stride[0] = from ? j->out_stride : NULL;
  stride[1] = NULL;
  stride[2] = to ? j->out_stride : NULL;
  return eini_dist_plan_graph(l, *g, stride, plan);
}

// The plan of a job, made when there is none yet; *id is its number in the list. merge: 0, or 1 for
// a merge of partial results. key: what tells the job from others.
static ein_status eini_dist_plan(eini_dist_plans *l, const eini_dist_job *j, int merge,
                                 const int64_t *key, int64_t nkey, int64_t *id) {
  *id = eini_dist_find(l, key, nkey);
  if (*id >= 0) return EIN_OK;
  ein_graph *g = NULL;
  ein_plan *plan = NULL;
  ein_status st = merge ? eini_dist_merge_build(l, j, &g, &plan)
                        : eini_dist_block_build(l, j, &g, &plan);
  eini_graph_free(g);
  if (st == EIN_OK) st = eini_dist_keep(l, key, nkey, plan);
  if (st != EIN_OK) ein_plan_destroy(plan);
  else *id = l->n - 1;
  return st;
}

// A ctx for the plans of tasks: allocator, kernels and clock of the caller's, and its executor
// unless every task is to run on one thread.
static ein_status eini_dist_ctx(const ein_ctx *ctx, int one_thread, ein_ctx **sub) {
  ein_ctx_desc d;
  memset(&d, 0, sizeof d);
  if (ctx != NULL) {
    d.allocator = ctx->al;
    d.nkernels = ctx->nkernels;
    d.kernels = (const ein_kernels *const *)ctx->kernels;
    if (!one_thread) d.executor = ctx->executor;
  }
  d.cache_plans = -1;
  return ein_ctx_create(&d, sub);
}

// ================================================================================================
// >>relation  tensor relations: join, aggregate, repartition
// Takes views and relations; gives relations, whose blocks are views or memory of their own.
// ================================================================================================

struct ein_relation {
  eini_arena arena;          // owns everything, the relation itself included
  ein_relation_info info;
  ein_dtype result;          // of the tensor once all is aggregated
  int64_t *bound, *pieces;
  ein_ztensor *block;        // nblock of them, row-major by key
  int64_t *origin;           // nblock * rank
};

static ein_relation *eini_rel_new(ein_ctx *ctx, int rank, int nkey) {
  eini_arena arena;
  eini_arena_init(&arena, ctx == NULL ? NULL : &ctx->al);
  ein_relation *r = EINI_NEW(&arena, ein_relation, 1);
  if (r == NULL) return NULL;
  r->bound = EINI_NEW(&arena, int64_t, rank);
  r->pieces = EINI_NEW(&arena, int64_t, nkey);
  r->arena = arena;
  if (r->bound != NULL && r->pieces != NULL) {
    r->info.rank = rank;
    r->info.nkey = nkey;
    r->info.bound = r->bound;
    r->info.pieces = r->pieces;
    return r;
  }
  ein_relation_destroy(r);
  return NULL;
}

// A message about a call of this section.
EINI_PRINTF(3, 4)
static ein_status eini_dist_refuse(ein_ctx *ctx, ein_status st, const char *format, ...) {
  va_list args;
  if (ctx == NULL) return st;
  eini_diag_reset(&ctx->diag, NULL, 0);
  va_start(args, format);
  eini_vfail(&ctx->diag, st, -1, 0, NULL, format, args);
  va_end(args);
  return st;
}

// Sets bounds, pieces and origins of the blocks, whose number must be sane.
static ein_status eini_rel_shape(ein_relation *r, ein_dtype dtype, const int64_t *bound,
                                 const int64_t *pieces) {
  int rank = r->info.rank;
  r->info.dtype = r->result = dtype;
  r->info.nblock = 1;
  for (int k = 0; k < rank; k++) r->bound[k] = bound[k];
  for (int k = 0; k < r->info.nkey; k++) {
    int64_t most = k < rank ? eini_max64(bound[k], 1) : INT32_MAX;
    if (pieces[k] < 1 || pieces[k] > most) return EIN_ERR_SHAPE;
    r->pieces[k] = pieces[k];
    if (eini_mul_overflow(r->info.nblock, pieces[k], &r->info.nblock) ||
        r->info.nblock > INT32_MAX) {
      return EIN_ERR_TOO_LARGE;
    }
  }
  int64_t n = r->info.nblock;
  r->block = EINI_NEW(&r->arena, ein_ztensor, n);
  r->origin = EINI_NEW(&r->arena, int64_t, n * rank);
  if (r->block == NULL || r->origin == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t b = 0; b < n; b++) {
    int64_t *shape = EINI_NEW(&r->arena, int64_t, 2 * (int64_t)rank), left = b;
    if (shape == NULL) return EIN_ERR_NO_MEMORY;
    for (int k = r->info.nkey - 1; k >= 0; k--) {
      int64_t digit = left % pieces[k];
      left /= pieces[k];
      if (k >= rank) continue;
      int64_t from = eini_dist_start(bound[k], pieces[k], digit);
      r->origin[b * rank + k] = from;
      shape[k] = eini_dist_start(bound[k], pieces[k], digit + 1) - from;
    }
    r->block[b].dtype = dtype;
    r->block[b].rank = rank;
    r->block[b].shape = shape;
    r->block[b].strides = shape + rank;
  }
  return EIN_OK;
}

static int64_t *eini_rel_strides(const ein_relation *r, int64_t b) {
  union { const int64_t *c; int64_t *v; } u;  // the relation's own memory
  u.c = r->block[b].shape;
  return u.v + r->info.rank;
}

// Memory for every block, dense, uninitialised values zero.
static ein_status eini_rel_alloc(ein_relation *r) {
  for (int64_t b = 0; b < r->info.nblock; b++) {
    int64_t n;
    EINI_TRY(eini_view_elements(r->info.rank, r->block[b].shape, &n));
    eini_dist_dense(r->info.rank, r->block[b].shape, eini_rel_strides(r, b));
    r->block[b].data = eini_new(&r->arena, n, ein_dtype_size(r->info.dtype));
    if (r->block[b].data == NULL) return EIN_ERR_NO_MEMORY;
  }
  return EIN_OK;
}

// Hands a relation out, or what went wrong.
static ein_status eini_rel_give(ein_ctx *ctx, ein_status st, ein_relation *r, ein_relation **out) {
  if (st == EIN_OK) {
    *out = r;
    return EIN_OK;
  }
  ein_relation_destroy(r);
  if (ctx != NULL && ctx->diag.count == 0)
    eini_dist_refuse(ctx, st, "a tensor relation: %s", ein_status_text(st));
  return st;
}

EIN_API void ein_relation_destroy(ein_relation *r) {
  if (r == NULL) return;
  eini_arena arena = r->arena;
  eini_arena_free(&arena);
}

EIN_API void ein_relation_get(const ein_relation *r, ein_relation_info *info) {
  if (r != NULL && info != NULL) *info = r->info;
}

EIN_API ein_status ein_relation_view(ein_ctx *ctx, const ein_ztensor *view, const int64_t *pieces,
                                     ein_relation **out) {
  if (out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  if (view == NULL || (view->rank > 0 && pieces == NULL)) return EIN_ERR_ARGUMENT;
  eini_begin_call(ctx, NULL);
  ein_status st = ein_view_check(view);
  ein_relation *r = NULL;
  if (st == EIN_OK) r = eini_rel_new(ctx, view->rank, view->rank);
  if (st == EIN_OK && r == NULL) st = EIN_ERR_NO_MEMORY;
  if (st == EIN_OK) st = eini_rel_shape(r, view->dtype, view->shape, pieces);
  for (int64_t b = 0; st == EIN_OK && b < r->info.nblock; b++) {
    int64_t *stride = eini_rel_strides(r, b), at = 0;
    for (int k = 0; k < view->rank; k++) {
      stride[k] = eini_stride(view, k);
      if (r->block[b].shape[k] > 0) at += stride[k] * r->origin[b * view->rank + k];
    }
    r->block[b].data = view->data;
    if (view->data != NULL && ein_view_count(&r->block[b]) > 0)
      r->block[b].data = (char *)view->data + at * (int64_t)ein_dtype_size(view->dtype);
  }
  return eini_rel_give(ctx, st, r, out);
}

// The number of a key's block, or -1.
static int64_t eini_rel_at(const ein_relation *r, const int64_t *key) {
  int64_t b = 0;
  for (int k = 0; k < r->info.nkey; k++) {
    if (key[k] < 0 || key[k] >= r->pieces[k]) return -1;
    b = b * r->pieces[k] + key[k];
  }
  return b;
}

EIN_API ein_status ein_relation_block(const ein_relation *r, const int64_t *key,
                                      ein_ztensor *block, int64_t *origin) {
  if (r == NULL || block == NULL || (r->info.nkey > 0 && key == NULL)) return EIN_ERR_ARGUMENT;
  int64_t b = eini_rel_at(r, key);
  if (b < 0) return EIN_ERR_BOUNDS;
  *block = r->block[b];
  for (int k = 0; origin != NULL && k < r->info.rank; k++)
    origin[k] = r->origin[b * r->info.rank + k];
  return EIN_OK;
}

// Copies what the box [from, from + shape) shares with block b of r into dst, which holds the box.
static void eini_rel_part(const ein_relation *r, int64_t b, const int64_t *from, char *dst,
                          const int64_t *shape, const int64_t *stride, int64_t *common) {
  const ein_ztensor *x = &r->block[b];
  const int64_t *origin = r->origin + b * r->info.rank;
  int64_t at = 0, to = 0, size = (int64_t)ein_dtype_size(x->dtype);
  for (int k = 0; k < x->rank; k++) {
    int64_t lo = eini_max64(from[k], origin[k]);
    int64_t hi = eini_min64(from[k] + shape[k], origin[k] + x->shape[k]);
    if (hi <= lo) return;
    common[k] = hi - lo;
    at += (lo - origin[k]) * x->strides[k];
    to += (lo - from[k]) * stride[k];
  }
  eini_dist_copy(x->rank, common, dst + to * size, stride, (const char *)x->data + at * size,
                 x->strides, (size_t)size);
}

// Puts a box together from all blocks of a relation without further keys.
static void eini_rel_gather(const ein_relation *r, const int64_t *from, char *dst,
                            const int64_t *shape, const int64_t *stride, int64_t *common) {
  for (int64_t b = 0; b < r->info.nblock; b++)
    eini_rel_part(r, b, from, dst, shape, stride, common);
}

EIN_API ein_status ein_relation_read(const ein_relation *r, const ein_ztensor *out) {
  if (r == NULL || out == NULL || r->info.nkey != r->info.rank) return EIN_ERR_ARGUMENT;
  EINI_TRY(ein_view_check(out));
  if (out->rank != r->info.rank) return EIN_ERR_SHAPE;
  if (out->dtype != r->info.dtype) return EIN_ERR_DTYPE;
  for (int k = 0; k < out->rank; k++)
    if (out->shape[k] != r->bound[k]) return EIN_ERR_SHAPE;
  if (ein_view_count(out) == 0) return EIN_OK;
  eini_arena a;
  eini_arena_init(&a, &r->arena.al);
  int64_t *dims = EINI_NEW(&a, int64_t, 3 * (int64_t)out->rank);
  if (dims == NULL) return EIN_ERR_NO_MEMORY;
  int64_t *stride = dims + out->rank, *common = stride + out->rank;
  for (int k = 0; k < out->rank; k++) stride[k] = eini_stride(out, k);
  eini_rel_gather(r, dims, (char *)out->data, out->shape, stride, common);
  eini_arena_free(&a);
  return EIN_OK;
}

EIN_API ein_status ein_relation_repartition(ein_ctx *ctx, const ein_relation *r,
                                            const int64_t *pieces, ein_relation **out) {
  if (out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  if (r == NULL || r->info.nkey != r->info.rank || (r->info.rank > 0 && pieces == NULL))
    return EIN_ERR_ARGUMENT;
  eini_begin_call(ctx, NULL);
  int rank = r->info.rank;
  ein_relation *x = eini_rel_new(ctx, rank, rank);
  ein_status st = x == NULL ? EIN_ERR_NO_MEMORY : eini_rel_shape(x, r->info.dtype, r->bound, pieces);
  if (st == EIN_OK) st = eini_rel_alloc(x);
  int64_t *common = st == EIN_OK ? EINI_NEW(&x->arena, int64_t, rank) : NULL;
  if (st == EIN_OK && common == NULL) st = EIN_ERR_NO_MEMORY;
  for (int64_t b = 0; st == EIN_OK && b < x->info.nblock; b++)
    eini_rel_gather(r, x->origin + b * rank, (char *)x->block[b].data, x->block[b].shape,
                    x->block[b].strides, common);
  return eini_rel_give(ctx, st, x, out);
}

// ---- join ----

// The state of one join.
typedef struct eini_rel_join {
  const ein_graph *g;
  const eini_stmt *s;
  const ein_relation *const *rel;
  ein_block_fn fn;
  void *user;
  ein_relation *out;
  eini_dist_space space;
  eini_arena arena, boxes;      // what lives for the join, and for one block
  eini_dist_plans plans;
  int64_t *lo, *len, *hi;       // nindex
  ein_ztensor *in;              // noperand
  const int64_t **stride;       // noperand
  const void **data;            // noperand
  ein_scalar *param;
  int64_t *key;                 // of a plan
  int distinct;                 // operands that are inputs of a plan
} eini_rel_join;

// The statement's index space under cut, row-major over all cut indices.
static ein_status eini_rel_space(eini_rel_join *j, const int64_t *cut) {
  const eini_stmt *s = j->s;
  int64_t *extent = EINI_NEW(&j->arena, int64_t, s->nindex);
  int64_t *weight = EINI_NEW(&j->arena, int64_t, s->nindex), n = 1;
  if (extent == NULL || weight == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = s->nindex - 1; i >= 0; i--) {
    extent[i] = s->index[i].extent;
    weight[i] = n;
    if (cut[i] < 1 || cut[i] > eini_max64(extent[i], 1)) return EIN_ERR_SHAPE;
    if (eini_mul_overflow(n, cut[i], &n) || n > INT32_MAX) return EIN_ERR_TOO_LARGE;
  }
  j->space.nindex = s->nindex;
  j->space.nfree = s->nfree;
  j->space.extent = extent;
  j->space.cut = cut;
  j->space.weight = weight;
  j->space.ntask = n;
  j->space.nagg = 1;
  for (int i = s->nfree; i < s->nindex; i++) j->space.nagg *= cut[i];
  return EIN_OK;
}

static ein_status eini_rel_validate(ein_ctx *ctx, const eini_rel_join *j) {
  const eini_stmt *s = j->s;
  const eini_tensor *t = &j->g->tensor[s->out];
  int plain = t->rank == s->nfree && s->rest == EIN_REST_ERROR;
  for (int r = 0; plain && r < t->rank; r++) {
    plain = s->out_map.offset[r] == 0;
    for (int c = 0; c < s->nindex; c++)
      plain &= s->out_map.coef[(int64_t)r * s->nindex + c] == (r == c);
  }
  if (!plain)
    return eini_dist_refuse(ctx, EIN_ERR_UNSUPPORTED,
                            "a join into '%s': the free indices are not its axes in order", t->name);
  for (int i = s->nfree; i < s->nindex && j->fn == NULL; i++) {
    if (j->space.cut[i] > 1 && !eini_dist_mergeable(s->fold))
      return eini_dist_refuse(ctx, EIN_ERR_UNSUPPORTED, "a join into '%s': index '%s' is cut, but "
                              "partial results of its fold are not one number", t->name,
                              s->index[i].name);
  }
  for (int k = 0; k < s->noperand; k++) {
    const eini_tensor *x = &j->g->tensor[s->operand[k]];
    const ein_relation *r = j->rel[k];
    if (r == NULL || r->info.nkey != r->info.rank || r->info.rank != x->rank ||
        r->info.dtype != x->dtype)
      return eini_dist_refuse(ctx, EIN_ERR_SHAPE, "operand %d: not a relation of '%s'", k, x->name);
    for (int a = 0; a < x->rank; a++)
      if (r->bound[a] != x->shape[a])
        return eini_dist_refuse(ctx, EIN_ERR_SHAPE, "operand %d: bound %d of '%s' is %lld, not %lld",
                                k, a, x->name, (long long)x->shape[a], (long long)r->bound[a]);
  }
  return EIN_OK;
}

// The relation of the results: keys of the free indices, then of the cut reduced ones.
static ein_status eini_rel_result(ein_ctx *ctx, eini_rel_join *j) {
  const eini_stmt *s = j->s;
  const eini_tensor *t = &j->g->tensor[s->out];
  int nkey = s->nfree;
  int64_t *pieces = EINI_NEW(&j->arena, int64_t, s->nindex);
  if (pieces == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < s->nindex; i++)
    if (i < s->nfree || j->space.cut[i] > 1) pieces[i < s->nfree ? i : nkey++] = j->space.cut[i];
  j->out = eini_rel_new(ctx, s->nfree, nkey);
  if (j->out == NULL) return EIN_ERR_NO_MEMORY;
  ein_dtype partial = ein_dtype_compute(s->type);
  EINI_TRY(eini_rel_shape(j->out, j->space.nagg > 1 ? partial : t->dtype, t->shape, pieces));
  j->out->result = t->dtype;
  return eini_rel_alloc(j->out);
}

// The box operand k reads: a view of one block, or put together.
static ein_status eini_rel_operand(eini_rel_join *j, int k) {
  const ein_relation *r = j->rel[k];
  int rank = r->info.rank;
  int64_t *from = EINI_NEW(&j->boxes, int64_t, 5 * (int64_t)rank), n;
  if (from == NULL) return EIN_ERR_NO_MEMORY;
  int64_t *to = from + rank, *shape = to + rank, *stride = shape + rank;
  eini_dist_hull(&j->s->proj[k], j->lo, j->hi, from, to);
  for (int a = 0; a < rank; a++) shape[a] = to[a] - from[a];
  ein_ztensor *v = &j->in[k];
  memset(v, 0, sizeof *v);
  v->dtype = r->info.dtype;
  v->rank = rank;
  v->shape = shape;
  for (int64_t b = 0; b < r->info.nblock; b++) {
    const int64_t *origin = r->origin + b * rank;
    int64_t at = 0;
    int a = 0;
    for (; a < rank; a++) {
      if (from[a] < origin[a] || to[a] > origin[a] + r->block[b].shape[a]) break;
      at += (from[a] - origin[a]) * r->block[b].strides[a];
    }
    if (a < rank) continue;
    v->strides = r->block[b].strides;
    v->data = r->block[b].data;
    if (v->data != NULL && ein_view_count(v) > 0)
      v->data = (char *)v->data + at * (int64_t)ein_dtype_size(v->dtype);
    return EIN_OK;
  }
  EINI_TRY(eini_view_elements(rank, shape, &n));
  eini_dist_dense(rank, shape, stride);
  v->strides = stride;
  v->data = eini_new(&j->boxes, n, ein_dtype_size(v->dtype));
  if (v->data == NULL) return EIN_ERR_NO_MEMORY;
  if (n > 0) eini_rel_gather(r, from, (char *)v->data, shape, stride, stride + rank);
  return EIN_OK;
}

// Runs the statement's plan for the block at hand.
static ein_status eini_rel_run(eini_rel_join *j, const ein_ztensor *out) {
  const eini_stmt *s = j->s;
  eini_dist_job job;
  int64_t n = 0, id;
  int nin = 0, norigin = 0;
  memset(&job, 0, sizeof job);
  for (int i = 0; i < s->nindex; i++) j->key[n++] = j->len[i];
  for (int k = 0; k < s->noperand; k++) {
    j->stride[k] = j->in[k].strides;
    if (eini_dist_first(s, k) < k) continue;
    for (int a = 0; a < j->in[k].rank; a++) j->key[n++] = j->in[k].strides[a];
    j->data[nin++] = j->in[k].data;
  }
  job.g = j->g;
  job.s = s;
  job.len = j->len;
  job.cut = j->space.cut;
  job.stride = j->stride;
  job.by_index = 1;
  job.dtype = out->dtype;
  EINI_TRY(eini_dist_plan(&j->plans, &job, 0, j->key, n, &id));
  for (int i = 0; i < s->nindex; i++) {
    if (!eini_dist_uses(s, j->space.cut, i)) continue;
    ein_scalar *p = &j->param[j->g->nparam + norigin++];
    p->set = 1;
    p->re = (double)j->lo[i];
  }
  ein_run run;
  void *data = out->data;
  memset(&run, 0, sizeof run);
  run.in = j->data;
  run.out = &data;
  run.param = j->param;
  return ein_plan_execute(j->plans.entry[id].plan, &run);
}

static ein_status eini_rel_task(eini_rel_join *j, int64_t q) {
  const eini_stmt *s = j->s;
  int64_t b = 0;
  eini_dist_range(&j->space, q, j->lo, j->hi);
  for (int i = 0; i < s->nindex; i++) {
    j->len[i] = j->hi[i] - j->lo[i];
    b = b * j->space.cut[i] + eini_dist_digit(&j->space, q, i);
  }
  for (int k = 0; k < s->noperand; k++) {
    int first = eini_dist_first(s, k);
    if (first == k || j->rel[first] != j->rel[k]) EINI_TRY(eini_rel_operand(j, k));
    else j->in[k] = j->in[first];
  }
  const ein_ztensor *out = &j->out->block[b];
  return j->fn != NULL ? j->fn(j->user, j->lo, j->len, j->in, out) : eini_rel_run(j, out);
}

static ein_status eini_rel_join_all(ein_ctx *ctx, eini_rel_join *j, const int64_t *cut,
                                    const ein_scalar *param) {
  const eini_stmt *s = j->s;
  eini_arena *a = &j->arena;
  int64_t nkey = s->nindex;
  EINI_TRY(eini_rel_space(j, cut));
  EINI_TRY(eini_rel_validate(ctx, j));
  for (int k = 0; k < s->noperand; k++) nkey += j->g->tensor[s->operand[k]].rank;
  j->lo = EINI_NEW(a, int64_t, s->nindex);
  j->hi = EINI_NEW(a, int64_t, s->nindex);
  j->len = EINI_NEW(a, int64_t, s->nindex);
  j->in = EINI_NEW(a, ein_ztensor, s->noperand);
  j->stride = EINI_NEW(a, const int64_t *, s->noperand);
  j->data = EINI_NEW(a, const void *, s->noperand);
  j->key = EINI_NEW(a, int64_t, nkey);
  j->param = EINI_NEW(a, ein_scalar, j->g->nparam + s->nindex);
  if (j->lo == NULL || j->hi == NULL || j->len == NULL || j->in == NULL || j->stride == NULL ||
      j->data == NULL || j->key == NULL || j->param == NULL)
    return EIN_ERR_NO_MEMORY;
  for (int64_t k = 0; param != NULL && k < j->g->nparam; k++) j->param[k] = param[k];
  EINI_TRY(eini_dist_ctx(ctx, 0, &j->plans.ctx));
  j->plans.a = a;
  EINI_TRY(eini_rel_result(ctx, j));
  for (int64_t q = 0; q < j->space.ntask; q++) {
    eini_arena_init(&j->boxes, &j->arena.al);
    ein_status st = eini_rel_task(j, q);
    eini_arena_free(&j->boxes);
    if (st != EIN_OK) return st;
  }
  return EIN_OK;
}

EIN_API ein_status ein_relation_join(ein_ctx *ctx, const ein_graph *graph, int stmt,
                                     const int64_t *cut, const ein_relation *const *rel,
                                     const ein_scalar *param, ein_block_fn fn, void *user,
                                     ein_relation **out) {
  if (out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  if (graph == NULL || graph->open || stmt < 0 || stmt >= graph->nstmt) return EIN_ERR_ARGUMENT;
  eini_rel_join j;
  memset(&j, 0, sizeof j);
  j.g = graph;
  j.s = &graph->stmt[stmt];
  j.rel = rel;
  j.fn = fn;
  j.user = user;
  if ((j.s->nindex > 0 && cut == NULL) || (j.s->noperand > 0 && rel == NULL))
    return EIN_ERR_ARGUMENT;
  eini_begin_call(ctx, NULL);
  eini_arena_init(&j.arena, ctx == NULL ? NULL : &ctx->al);
  ein_status st = eini_rel_join_all(ctx, &j, cut, param);
  eini_dist_plans_end(&j.plans);
  ein_ctx_destroy(j.plans.ctx);
  eini_arena_free(&j.arena);
  return eini_rel_give(ctx, st, j.out, out);
}

// ---- aggregation ----

// A graph y[i..] = fold[k](x[k, i..]) for blocks of one shape.
static ein_status eini_rel_fold_graph(ein_ctx *ctx, const ein_relation *r, const int64_t *shape,
                                      int64_t n, const char *monoid, ein_graph **g) {
  int rank = r->info.rank, x, y;
  eini_stmt *s;
  *g = eini_graph_new(ctx);
  if (*g == NULL) return EIN_ERR_NO_MEMORY;
  int64_t *stack = EINI_NEW(&(*g)->arena, int64_t, rank + 1);
  if (stack == NULL) return EIN_ERR_NO_MEMORY;
  stack[0] = n;
  for (int k = 0; k < rank; k++) stack[k + 1] = shape[k];
  EINI_TRY(eini_dist_tensor(*g, "x", EIN_ROLE_INPUT, r->info.dtype, rank + 1, stack, &x));
  EINI_TRY(eini_dist_tensor(*g, "y", EIN_ROLE_OUTPUT, r->result, rank, stack + 1, &y));
  EINI_TRY(eini_graph_add_stmt(*g, y, rank + 1, 1, &x, &s));
  s->nfree = rank;
  for (int k = 0; k <= rank; k++) {
    s->index[k].name = "";
    s->index[k].extent = stack[k < rank ? k + 1 : 0];
    s->proj[0].coef[(int64_t)(k < rank ? k + 1 : 0) * (rank + 1) + k] = 1;
    if (k < rank) s->out_map.coef[(int64_t)k * (rank + 1) + k] = 1;
  }
  EINI_TRY(eini_fold_named(*g, eini_diag_of(ctx), monoid, &s->fold));
  if (eini_expr_add(&(*g)->arena, &s->expr, EINI_OP_OPERAND, -1, 0, 0, 0) < 0)
    return EIN_ERR_NO_MEMORY;
  s->numpy = 1;  // partial sums of bool are combined by or
  return eini_stmt_finish(*g, s, eini_diag_of(ctx));
}

// Folds the n blocks of one group, which follow each other from block `first`.
static ein_status eini_rel_fold(ein_ctx *ctx, eini_dist_plans *l, const ein_relation *r,
                                int64_t first, int64_t n, const char *monoid, char *stack,
                                const ein_ztensor *out) {
  static const int64_t *const dense[2] = {NULL, NULL};
  const ein_ztensor *b = &r->block[first];
  size_t bytes = (size_t)ein_view_count(b) * ein_dtype_size(b->dtype);
  int64_t id = eini_dist_find(l, b->shape, b->rank);
  if (id < 0) {
    ein_graph *g = NULL;
    ein_plan *plan = NULL;
    ein_status st = eini_rel_fold_graph(ctx, r, b->shape, n, monoid, &g);
    if (st == EIN_OK) st = eini_dist_plan_graph(l, g, dense, &plan);
    eini_graph_free(g);
    if (st == EIN_OK) st = eini_dist_keep(l, b->shape, b->rank, plan);
    if (st != EIN_OK) {
      ein_plan_destroy(plan);
      return st;
    }
    id = l->n - 1;
  }
  for (int64_t k = 0; k < n && bytes > 0; k++)
    memcpy(stack + (size_t)k * bytes, r->block[first + k].data, bytes);
  ein_run run;
  const void *in = stack;
  void *data = out->data;
  memset(&run, 0, sizeof run);
  run.in = &in;
  run.out = &data;
  return ein_plan_execute(l->entry[id].plan, &run);
}

static ein_status eini_rel_aggregate_all(ein_ctx *ctx, const ein_relation *r, const char *monoid,
                                         ein_relation *x) {
  int64_t n = 1, largest = 0, bytes;
  EINI_TRY(eini_rel_shape(x, r->result, r->bound, r->pieces));
  EINI_TRY(eini_rel_alloc(x));
  for (int k = r->info.rank; k < r->info.nkey; k++) n *= r->pieces[k];
  for (int64_t b = 0; b < r->info.nblock; b++)
    largest = eini_max64(largest, ein_view_count(&r->block[b]));
  if (eini_mul_overflow(n, largest, &bytes)) return EIN_ERR_TOO_LARGE;
  eini_arena scratch;
  eini_dist_plans l;
  memset(&l, 0, sizeof l);
  eini_arena_init(&scratch, &x->arena.al);
  char *stack = (char *)eini_new(&scratch, bytes, ein_dtype_size(r->info.dtype));
  ein_status st = stack == NULL ? EIN_ERR_NO_MEMORY : eini_dist_ctx(ctx, 0, &l.ctx);
  l.a = &scratch;
  for (int64_t b = 0; st == EIN_OK && b < x->info.nblock; b++)
    st = eini_rel_fold(ctx, &l, r, b * n, n, monoid, stack, &x->block[b]);
  eini_dist_plans_end(&l);
  ein_ctx_destroy(l.ctx);
  eini_arena_free(&scratch);
  return st;
}

EIN_API ein_status ein_relation_aggregate(ein_ctx *ctx, const ein_relation *r, const char *monoid,
                                          ein_relation **out) {
  if (out == NULL) return EIN_ERR_ARGUMENT;
  *out = NULL;
  if (r == NULL || monoid == NULL) return EIN_ERR_ARGUMENT;
  eini_begin_call(ctx, NULL);
  ein_relation *x = eini_rel_new(ctx, r->info.rank, r->info.rank);
  ein_status st = x == NULL ? EIN_ERR_NO_MEMORY : eini_rel_aggregate_all(ctx, r, monoid, x);
  return eini_rel_give(ctx, st, x, out);
}

#endif  // EINSUM_IMPLEMENTATION
