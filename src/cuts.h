// ================================================================================================
// >>cuts  which indices may be cut, and the vectors for p places
// A form is a statement up to names: statements of one form share vectors and tables.
// ================================================================================================

#define EINI_CUTS_MAX 63       // cut indices: each has two pieces or more, of fewer than 2^63 tasks

// The ways to cut and place a statement; n of them, nindex entries each.
typedef struct eini_ways {
  int64_t n, cap;
  int64_t *cut, *home;     // of tasks; of what they leave: another only where it is scattered
  int *order, *norder;     // order: cut indices, most significant digit first
  int *home_order, *home_norder;
  int *sent;               // the reduced index whose partial results are scattered; -1: none
} eini_ways;

typedef struct eini_dform {
  const eini_stmt *s;      // in the words of the first of its kind
  int kind;                // the first statement that differs in names, orders and literals only
  const int *at;           // of the indices, as they are written: where they are; NULL: there
  int64_t *limit;          // most pieces of each index; 1: it stays whole
  int64_t *need;           // pieces that are asked for; 0: open
  int pinned;              // placed as a pinned tensor: reduced digits first, then axis order
  const ein_parts *fixed;  // the only way; or NULL
  int *prefer;             // its indices, those first that most statements can be cut by alike
  const int64_t *hint;     // a vector that is not dropped; or NULL
  int64_t nvector;         // vectors, whether there are ways of them or not; see every
  int64_t *vector;
  int every;               // they are all of the family
  int64_t nraised;         // of them: those that come first, for the bound takes them
  eini_ways ways;
  double *join, *agg, *seconds;  // of each way: what does not depend on other statements
  double *unary;           // their sum under the model
  double least;            // of unary, over dropped ways too; 0 where not all were seen
  unsigned char *active;   // operands that are fetched, [noperand]: the output is read
  unsigned char *again;    // operands that one before reads by the same projection: they are
                           //   fetched and counted once
} eini_dform;

struct ein_decomposition {
  eini_arena arena;
  ein_decomp_info info;
  ein_parts *parts;        // of statements, then of pinned inputs
  ein_decomp_stmt *stmt;
  int npinned, *pinned;    // tensors
  ein_graph *graph;        // that it is of, its own, where results are scattered; NULL: as given
  int *factored;           // then, [statement as given]: the index that was split, or -1
  int *sent, nsent;        // [statement] while there is none: the index they are sent for, or -1
  ein_parts *home;         // and how they lie
  double work, sim_work;   // that it took, and that a simulation takes, see max_work
  uint64_t classes;        // of its graph, see eini_classes_all
};

typedef struct eini_decomposer {
  eini_arena arena;        // scratch of the call
  ein_ctx *ctx;
  eini_diag *diag;
  const ein_graph *g;
  const ein_decompose_desc *desc;
  ein_machine machine;
  int64_t p;
  int ndivisor;
  int64_t divisor[256];    // of p
  int nnode;               // statements, then pinned inputs
  int nform;
  int64_t nvector;         // ways of all forms
  int npinned;             // the last nodes: pinned inputs, as statements that copy them
  eini_dform *node;        // what is asked of each statement; ways and tables are its form's
  int *tensor_node;        // of each pinned input; -1: not pinned
  int *form_of;            // node whose form a node has
  uint64_t classes;        // see eini_classes_all
  int cut_short;           // ways were dropped for lack of room
  double lower;            // no labels cost less, whatever was dropped
  int64_t most;            // ways of a form
  double work;             // places looked at for edges, about
  double over;             // the least bytes of vectors that do not fit the memory by themselves
  int over_at;             // and their statement
  int64_t effort;          // steps left to enumerate vectors
  struct eini_bounded *bounded;  // [form] labels of the bound
  struct eini_unscattered *plain;  // the search without scattered results; or NULL
  int scatter;             // partial results may be scattered
  ein_graph *pairs;        // the statements that are then two
  eini_keys paired;        // form, index and pieces of each two
  const ein_decomposition *hint;  // its vectors are not dropped; or NULL
} eini_decomposer;

// Which indices the executor can cut: of an output coordinate with several indices only that with
// the largest coefficient; in deterministic mode none whose pieces would be added otherwise.
static void eini_cut_limits(const ein_graph *g, const eini_stmt *s, int64_t *limit) {
  for (int c = 0; c < s->nindex; c++)
    limit[c] = eini_order_cuts(g, s, c) ? eini_max64(1, s->index[c].extent) : 1;
  for (int r = 0; r < s->out_map.rows; r++) {
    const eini_mapterm *x = s->out_map.term, *end = x + s->out_map.first[r + 1];
    int64_t most = 0;
    x += s->out_map.first[r];
    for (const eini_mapterm *y = x; y < end; y++)
      if (s->index[y->index].extent > 1) most = eini_max64(most, eini_abs64(y->coef));
    for (; x < end; x++)
      if (x->coef != most && x->coef != -most) limit[x->index] = 1;
  }
}

static int eini_divisors(int64_t n, int64_t *divisor) {
  int count = 0;
  for (int64_t d = 1; d * d <= n; d++) count += (n % d == 0) + (n % d == 0 && d * d != n);
  for (int64_t d = 1, low = 0, high = count; d * d <= n; d++) {
    if (n % d != 0) continue;
    divisor[low++] = d;
    divisor[--high] = n / d;
  }
  return count;
}

// Parts of a statement that is written in other words: index c is at[c] there. back: they are the
// other's, and become its own.
EINI_UNUSED static ein_status eini_parts_respell(eini_arena *a, ein_parts p, const int *at,
                                                 int back, ein_parts *to) {
  const int n = p.nindex;
  int *order = EINI_NEW(a, int, p.norder), *from = EINI_NEW(a, int, n);
  int64_t *cut = EINI_NEW(a, int64_t, n);
  *to = p;
  to->cut = cut;
  to->order = order;
  if (order == NULL || from == NULL || cut == NULL) return EIN_ERR_NO_MEMORY;
  for (int c = 0; c < n; c++) {
    const int k = at == NULL ? c : at[c], mine = back ? c : k, other = back ? k : c;
    from[other] = mine;
    cut[mine] = p.cut[other];
  }
  for (int j = 0; j < p.norder; j++) order[j] = from[p.order[j]];
  return EIN_OK;
}

static int64_t eini_tasks(const int64_t *cut, int n) {
  int64_t tasks = 1;
  for (int c = 0; c < n; c++) tasks *= cut[c];
  return tasks;
}
