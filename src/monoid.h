// ================================================================================================
// >>monoid  folds as states
// A fold is lift, merge, identity and finish over a state of 1 to 4 scalars (DESIGN: one idea).
// ================================================================================================

typedef struct eini_fold_row {
  const char *name;
  unsigned char nstate, has_identity;
  unsigned char joins;  // joins that distribute over the fold, EIN_JOIN_*
} eini_fold_row;

// any over and, all over or are written with the joins that mean them for bool: MUL and MAX.
static const eini_fold_row eini_folds[EIN_FOLD_USER] = {
    {"none", 0, 1, 0},
    {"sum", 1, 1, EIN_JOIN_MUL},
    {"prod", 1, 1, 0},
    {"max", 1, 1, EIN_JOIN_ADD | EIN_JOIN_MIN},
    {"min", 1, 1, EIN_JOIN_ADD | EIN_JOIN_MAX},
    {"any", 1, 1, EIN_JOIN_MUL},
    {"all", 1, 1, EIN_JOIN_MAX},
    {"logsumexp", 2, 1, EIN_JOIN_ADD},  // max, sum of exp(x - max)
    {"argmax", 2, 0, 0},                // value, position
    {"argmin", 2, 0, 0},
    {"mean", 1, 0, 0},                  // sum: the count is the size of the reduced space
    {"var", 3, 0, 0},                   // count, mean, sum of squared deviations
    {"block", 1, 1, 0}};                // never cut: there are no partial results

// Does the fold's state hold positions?
static int eini_fold_counts(int fold) { return fold == EIN_FOLD_ARGMAX || fold == EIN_FOLD_ARGMIN; }

static int eini_fold_find(const char *name, int64_t n) {
  for (int i = EIN_FOLD_SUM; i < EIN_FOLD_BLOCK; i++) {
    if ((int64_t)strlen(eini_folds[i].name) == n &&
        memcmp(eini_folds[i].name, name, (size_t)n) == 0) {
      return i;
    }
  }
  return EIN_FOLD_NONE;
}

// The logical dtype of a fold's result over values of dtype t.
static ein_dtype eini_fold_dtype(int fold, ein_dtype t) {
  switch (fold) {
    case EIN_FOLD_ANY: case EIN_FOLD_ALL: return EIN_BOOL;
    case EIN_FOLD_ARGMAX: case EIN_FOLD_ARGMIN: return EIN_I64;
    case EIN_FOLD_LOGSUMEXP: return eini_kind_of(t) < EINI_KREAL ? EIN_F64 : t;
    case EIN_FOLD_MEAN: return eini_kind_of(t) < EINI_KREAL ? EIN_F64 : t;
    case EIN_FOLD_VAR:
      if (eini_kind_of(t) < EINI_KREAL) return EIN_F64;
      return t == EIN_C64 ? EIN_F32 : t == EIN_C128 ? EIN_F64 : t;
    default: return t;
  }
}
