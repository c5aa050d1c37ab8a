// ================================================================================================
// >>lattice  what any set of points must touch
// Takes linear maps; gives the subspaces that say which inequalities |V| <= product of
// |image j of V|^s_j hold for every finite set V (Christ, Demmel, Knight, Scanlon, Yelick 2013,
// theorem 3.2: Hoelder, Brascamp, Lieb).
// ================================================================================================

#define EINI_LATTICE_MOST 48     // subspaces, at most

// A subspace by an integer basis in echelon form, which is one for each.
typedef struct eini_subspace {
  int dim;
  int64_t *basis;          // [dim][n]
} eini_subspace;

typedef struct eini_lattice {
  eini_arena *a;
  int n, nspace;
  eini_subspace space[EINI_LATTICE_MOST];
} eini_lattice;

// What is orthogonal to rows in echelon form.
static ein_status eini_subspace_normal(eini_arena *a, int n, const eini_subspace *of,
                                       eini_subspace *to) {
  to->dim = n - of->dim;
  to->basis = EINI_NEW(a, int64_t, (int64_t)n * n);
  if (to->basis == NULL) return EIN_ERR_NO_MEMORY;
  int made = 0;
  for (int c = 0, r = 0; c < n; c++) {
    if (r < of->dim && of->basis[(int64_t)r * n + c] != 0) {
      int lead = 1;
      for (int i = 0; i < c; i++) lead &= of->basis[(int64_t)r * n + i] == 0;
      if (lead) {
        r++;
        continue;
      }
    }
    // Coordinate c is free: the pivots follow from it.
    int64_t *row = to->basis + (int64_t)made++ * n, scale = 1;
    for (int q = 0; q < r; q++) {
      const int64_t *p = of->basis + (int64_t)q * n;
      int lead = 0;
      while (p[lead] == 0) lead++;
      if (p[c] == 0) continue;
      const int64_t by = p[lead] / eini_gcd64(scale, p[lead]);
      if (eini_mul_overflow(scale, by, &scale)) return EIN_ERR_TOO_LARGE;
    }
    row[c] = scale;
    for (int q = 0; q < r; q++) {
      const int64_t *p = of->basis + (int64_t)q * n;
      int lead = 0;
      while (p[lead] == 0) lead++;
      if (p[c] == 0) continue;
      if (eini_mul_overflow(-(scale / p[lead]), p[c], &row[lead])) return EIN_ERR_TOO_LARGE;
    }
  }
  return eini_echelon(to->basis, made, n) < 0 ? EIN_ERR_TOO_LARGE : EIN_OK;
}

static ein_status eini_subspace_sum(eini_arena *a, int n, const eini_subspace *x,
                                    const eini_subspace *y, eini_subspace *to) {
  to->basis = EINI_NEW(a, int64_t, (int64_t)(x->dim + y->dim) * n);
  if (to->basis == NULL) return EIN_ERR_NO_MEMORY;
  const size_t row = (size_t)n * sizeof *to->basis;
  if (x->dim > 0) memcpy(to->basis, x->basis, (size_t)x->dim * row);
  if (y->dim > 0) memcpy(to->basis + (int64_t)x->dim * n, y->basis, (size_t)y->dim * row);
  to->dim = eini_echelon(to->basis, x->dim + y->dim, n);
  return to->dim < 0 ? EIN_ERR_TOO_LARGE : EIN_OK;
}

static ein_status eini_lattice_add(eini_lattice *l, const eini_subspace *x) {
  if (x->dim == 0) return EIN_OK;
  for (int i = 0; i < l->nspace; i++) {
    const eini_subspace *y = &l->space[i];
    if (y->dim == x->dim && memcmp(x->basis, y->basis, (size_t)x->dim * (size_t)l->n *
                                   sizeof *x->basis) == 0) return EIN_OK;
  }
  if (l->nspace == EINI_LATTICE_MOST) return EIN_ERR_TOO_LARGE;
  l->space[l->nspace++] = *x;
  return EIN_OK;
}

// Closes the lattice under sums and intersections.
static ein_status eini_lattice_close(eini_lattice *l) {
  for (int i = 0; i < l->nspace; i++) {
    for (int k = 0; k < i; k++) {
      eini_subspace x, y, sum, meet;
      EINI_TRY(eini_subspace_sum(l->a, l->n, &l->space[i], &l->space[k], &sum));
      if (sum.dim == l->space[i].dim || sum.dim == l->space[k].dim) continue;  // one in the other
      EINI_TRY(eini_lattice_add(l, &sum));
      if (sum.dim == l->space[i].dim + l->space[k].dim) continue;  // they meet in 0
      EINI_TRY(eini_subspace_normal(l->a, l->n, &l->space[i], &x));
      EINI_TRY(eini_subspace_normal(l->a, l->n, &l->space[k], &y));
      EINI_TRY(eini_subspace_sum(l->a, l->n, &x, &y, &sum));
      EINI_TRY(eini_subspace_normal(l->a, l->n, &sum, &meet));
      EINI_TRY(eini_lattice_add(l, &meet));
    }
  }
  return EIN_OK;
}

// The rank of a map, in rows, on a subspace. -1: too large numbers.
static int eini_subspace_rank(eini_arena *a, int n, const eini_subspace *map,
                              const eini_subspace *of) {
  const eini_arena_at mark = eini_arena_mark(a);
  int64_t *image = EINI_NEW(a, int64_t, (int64_t)of->dim * map->dim + 1);
  int rank = 0;
  if (image == NULL) return -2;
  for (int i = 0; i < of->dim && rank >= 0; i++) {
    for (int r = 0; r < map->dim; r++) {
      int64_t *to = &image[(int64_t)i * map->dim + r];
      for (int c = 0; c < n; c++)
        if (eini_muladd_overflow(map->basis[(int64_t)r * n + c], of->basis[(int64_t)i * n + c], *to,
                                 to)) rank = -1;
    }
  }
  if (rank >= 0) rank = eini_echelon(image, of->dim, map->dim);
  eini_arena_rollback(a, &mark);
  return rank;
}

// ---- blocks ----

// Coordinates that stand together in a row of a map are a block, named by one of them. Kernels are
// sums of their parts in blocks, so are sums and intersections of those, and ranks add up: what
// holds of the parts holds of all.
static void eini_map_blocks(const eini_subspace *map, int m, int n, int *block) {
  for (int c = 0; c < n; c++) block[c] = c;
  for (int j = 0; j < m; j++) {
    for (int r = 0; r < map[j].dim; r++) {
      const int64_t *row = map[j].basis + (int64_t)r * n;
      int to = -1;
      for (int c = 0; c < n; c++) {
        const int from = block[c];
        if (row[c] == 0) continue;
        to = to < 0 ? from : to;
        for (int d = 0; d < n && from != to; d++) block[d] = block[d] == from ? to : block[d];
      }
    }
  }
}

// The part of a map in block b, over its coordinates, of which there are `wide`.
static ein_status eini_map_part(eini_arena *a, int n, const eini_subspace *map, const int *block,
                                int b, int wide, eini_subspace *to) {
  to->dim = 0;
  to->basis = EINI_NEW(a, int64_t, (int64_t)map->dim * wide);
  if (to->basis == NULL) return EIN_ERR_NO_MEMORY;
  for (int r = 0; r < map->dim; r++) {
    int at = 0, in = 0;
    for (int c = 0; c < n; c++) {
      if (block[c] != b) continue;
      const int64_t x = map->basis[(int64_t)r * n + c];
      to->basis[(int64_t)to->dim * wide + at++] = x;
      in |= x != 0;
    }
    to->dim += in;
  }
  return EIN_OK;
}

// The lattice of the kernels of maps, closed, and the whole.
static ein_status eini_lattice_of(eini_lattice *l, const eini_subspace *map, int m) {
  eini_subspace x = {l->n, NULL};
  l->nspace = 0;
  for (int j = 0; j < m; j++) {
    eini_subspace kernel;
    EINI_TRY(eini_subspace_normal(l->a, l->n, &map[j], &kernel));
    EINI_TRY(eini_lattice_add(l, &kernel));
  }
  EINI_TRY(eini_lattice_close(l));
  x.basis = EINI_NEW(l->a, int64_t, (int64_t)l->n * l->n);
  if (x.basis == NULL) return EIN_ERR_NO_MEMORY;
  for (int i = 0; i < l->n; i++) x.basis[(int64_t)i * l->n + i] = 1;
  return eini_lattice_add(l, &x);
}
