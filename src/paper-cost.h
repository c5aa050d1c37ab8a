// ================================================================================================
// >>paper-cost  the cost model of the EinDecomp paper
// Scalars moved: join, aggregation and repartition (section 7). It counts means over all tasks
// where pieces differ, not what the section cost says of one block.
// ================================================================================================

// Mean extent along coordinate r of what a task reads or writes. writes: elements; else the hull,
// where a stride's last step counts as a whole one, so that equal pieces of X and X[2*i] fit.
static double eini_mean_side(const eini_stmt *s, const eini_map *m, int r, const int64_t *cut,
                             int writes) {
  double count = 1, hull = 0, last = 0;
  int terms = 0;
  for (int e = m->first[r]; e < m->first[r + 1]; e++) {
    const int c = m->term[e].index;
    double piece = (double)s->index[c].extent / (double)cut[c];
    double step = (double)eini_abs64(m->term[e].coef);
    if (piece == 0) return 0;
    count *= piece;
    hull += terms++ == 0 ? step * piece : step * (piece - 1) + (step > last ? step - last : 0);
    if (step > last) last = step;
  }
  return writes ? count : terms > 0 ? hull : 1;
}

static double eini_mean_count(const eini_stmt *s, const eini_map *m, const int64_t *cut,
                              int writes) {
  double count = 1;
  for (int r = 0; r < m->rows; r++) count *= eini_mean_side(s, m, r, cut, writes);
  return count;
}

// join = N * sum of the operands' blocks; agg = N / nagg * (nagg - 1) * the output's block, whose
// partial results may have several scalars per element.
static void eini_paper_vertex(const ein_graph *g, const eini_dform *f, const int64_t *cut,
                              double *join, double *agg) {
  const eini_stmt *s = f->s;
  double tasks = (double)eini_tasks(cut, s->nindex), read = 0;
  double nagg = (double)eini_tasks(cut + s->nfree, s->nindex - s->nfree);
  for (int k = 0; k < s->noperand; k++)
    if (!f->again[k]) read += eini_mean_count(s, &s->proj[k], cut, 0);
  *join = tasks * read;
  *agg = tasks / nagg * (nagg - 1) * eini_mean_count(s, &s->out_map, cut, 1) *
         eini_partial_scalars(g, s);
}

// Sides of the blocks of producer x (k < 0) or of what a task of reader x reads of operand k,
// rank of them, and then their number.
static void eini_paper_sides(const eini_stmt *x, int k, const int64_t *cut, double *side) {
  const eini_map *m = eini_access(x, k);
  for (int r = 0; r < m->rows; r++) side[r] = eini_mean_side(x, m, r, cut, k < 0);
  side[m->rows] = 1;
  for (int c = 0; c < x->nindex; c++)
    if (eini_map_uses(m, c) > 0) side[m->rows] *= (double)cut[c];
}

// From blocks with sides `have` of a tensor of sides `whole` to those that readers need: np and nc
// scalars each, nint of them in common.
static double eini_paper_repart(int rank, const double *whole, const double *have,
                                const double *need, int code) {
  double np = 1, nc = 1, nint = 1, count = need[rank];
  for (int r = 0; r < rank; r++) {
    double side = need[r] < whole[r] ? need[r] : whole[r];  // it may read several pieces
    np *= have[r];
    nc *= side;
    nint *= have[r] < side ? have[r] : side;
  }
  if (nint == 0 || (np == nint && nc == nint)) return 0;
  if (code) return (np + nc) * (count * nc) / nint;
  return (nc / nint - 1) * count * (nc + np) + (np != nint ? np * count : 0);
}
