// ================================================================================================
// >>monoid  folds as states
// A fold is lift, merge, identity and finish over a state of 1 to 4 scalars (DESIGN: one idea).
// ================================================================================================

// The names of ein_fold in here.
enum {
  EINI_FOLD_NONE = EIN_FOLD_NONE,
  EINI_SUM = EIN_FOLD_SUM, EINI_PROD = EIN_FOLD_PROD,
  EINI_MAX = EIN_FOLD_MAX, EINI_MIN = EIN_FOLD_MIN,
  EINI_ANY = EIN_FOLD_ANY, EINI_ALL = EIN_FOLD_ALL,
  EINI_LOGSUMEXP = EIN_FOLD_LOGSUMEXP,  // state: max, sum of exp(x - max)
  EINI_ARGMAX = EIN_FOLD_ARGMAX, EINI_ARGMIN = EIN_FOLD_ARGMIN,  // state: value, position
  EINI_MEAN = EIN_FOLD_MEAN,            // state: sum (the count is the size of the reduced space)
  EINI_VAR = EIN_FOLD_VAR,              // state: count, mean, sum of squared deviations
  EINI_FOLD_USER = EIN_FOLD_USER        // and above: user monoid number fold - EINI_FOLD_USER
};

typedef struct eini_fold_row {
  const char *name;
  unsigned char nstate, has_identity;
  unsigned char joins;  // joins that distribute over the fold, EIN_JOIN_*
} eini_fold_row;

// any over and, all over or are written with the joins that mean them for bool: MUL and MAX.
static const eini_fold_row eini_folds[EINI_FOLD_USER] = {
    {"none", 0, 1, 0},
    {"sum", 1, 1, EIN_JOIN_MUL},
    {"prod", 1, 1, 0},
    {"max", 1, 1, EIN_JOIN_ADD | EIN_JOIN_MIN},
    {"min", 1, 1, EIN_JOIN_ADD | EIN_JOIN_MAX},
    {"any", 1, 1, EIN_JOIN_MUL},
    {"all", 1, 1, EIN_JOIN_MAX},
    {"logsumexp", 2, 1, EIN_JOIN_ADD},
    {"argmax", 2, 0, 0},
    {"argmin", 2, 0, 0},
    {"mean", 1, 0, 0},
    {"var", 3, 0, 0}};

// Does the fold's state hold positions?
static int eini_fold_counts(int fold) { return fold == EINI_ARGMAX || fold == EINI_ARGMIN; }

static int eini_fold_find(const char *name, int64_t n) {
  for (int i = EINI_SUM; i < EINI_FOLD_USER; i++) {
    if ((int64_t)strlen(eini_folds[i].name) == n &&
        memcmp(eini_folds[i].name, name, (size_t)n) == 0) {
      return i;
    }
  }
  return EINI_FOLD_NONE;
}

// The logical dtype of a fold's result over values of dtype t.
static ein_dtype eini_fold_dtype(int fold, ein_dtype t) {
  switch (fold) {
    case EINI_ANY: case EINI_ALL: return EIN_BOOL;
    case EINI_ARGMAX: case EINI_ARGMIN: return EIN_I64;
    case EINI_LOGSUMEXP: return eini_kind_of(t) < EINI_KREAL ? EIN_F64 : t;
    case EINI_MEAN: return eini_kind_of(t) < EINI_KREAL ? EIN_F64 : t;
    case EINI_VAR:
      if (eini_kind_of(t) < EINI_KREAL) return EIN_F64;
      return t == EIN_C64 ? EIN_F32 : t == EIN_C128 ? EIN_F64 : t;
    default: return t;
  }
}
