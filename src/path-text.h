// ================================================================================================
// >>path-text  a path given as text
// Steps of one or more positions: "(0,1) (0,1)", "0,1 0,1", Python's "[(0, 1), (0,)]" or JSON's
// "[[0, 1], [0]]".
// ================================================================================================

typedef struct eini_path_text {
  eini_diag *diag;
  const char *text;
  int64_t at;
  int64_t *where, nwhere, cap;  // bytes at which positions stand
  int *pos;
} eini_path_text;

static ein_status eini_path_wrong(eini_path_text *t, int64_t at, const char *what) {
  return eini_fail(t->diag, EIN_ERR_ARGUMENT, at, 1, "write steps as (0,1) (0,1) or [[0,1],[0,1]]",
                   "the path is not a list of steps: %s", what);
}

static int eini_path_skip(eini_path_text *t) {
  while (t->text[t->at] == ' ') t->at++;
  return (unsigned char)t->text[t->at];
}

// Reads "0,1" up to `close`; without brackets (close 0) it ends where no comma follows.
static ein_status eini_path_numbers(eini_arena *a, eini_path_text *t, int close) {
  for (;;) {
    int c = close != 0 ? eini_path_skip(t) : (unsigned char)t->text[t->at];
    if (!eini_is_digit((unsigned char)c)) return eini_path_wrong(t, t->at, "a position is missing");
    int64_t *w = (int64_t *)eini_grow(a, t->where, t->nwhere, &t->cap, sizeof *w);
    if (w == NULL) return EIN_ERR_NO_MEMORY;
    t->where = w;
    w[t->nwhere++] = t->at;
    while (eini_is_digit((unsigned char)t->text[t->at])) t->at++;
    c = close != 0 ? eini_path_skip(t) : (unsigned char)t->text[t->at];
    if (c == ',') t->at++;
    if (c == ',' && (close == 0 || eini_path_skip(t) != close)) continue;
    if (close == 0) return EIN_OK;
    if (eini_path_skip(t) != close) return eini_path_wrong(t, t->at, "a bracket is open");
    t->at++;
    return EIN_OK;
  }
}

static ein_status eini_path_steps(eini_arena *a, eini_path_text *t, eini_path *path) {
  int64_t cap = 0;
  int c = eini_path_skip(t);
  int64_t begin = t->at++;
  int whole = c == '[' && (eini_path_skip(t) == '[' || t->text[t->at] == '(');
  if (!whole) t->at = begin;
  for (;;) {
    int *f = (int *)eini_grow(a, path->first, path->nstep, &cap, sizeof *f);
    if (f == NULL) return EIN_ERR_NO_MEMORY;
    path->first = f;
    f[path->nstep] = (int)t->nwhere;
    c = eini_path_skip(t);
    if (c == 0 || (whole && c == ']')) break;
    if (path->nstep > INT_MAX / 4 || t->nwhere > INT_MAX / 4) return EIN_ERR_TOO_LARGE;
    if (c == '(' || c == '[') t->at++;
    EINI_TRY(eini_path_numbers(a, t, c == '(' ? ')' : c == '[' ? ']' : 0));
    path->nstep++;
    if (eini_path_skip(t) != ',') continue;
    t->at++;
    if (!whole && eini_path_skip(t) == 0) return eini_path_wrong(t, t->at, "a step is missing");
  }
  t->at += whole && c == ']';
  if (whole && c != ']') return eini_path_wrong(t, t->at, "a bracket is open");
  return eini_path_skip(t) == 0 ? EIN_OK : eini_path_wrong(t, t->at, "it goes on after its end");
}

// Reads the steps of a path of any network.
static ein_status eini_path_read(eini_arena *a, eini_diag *diag, const char *s, eini_path_text *t,
                                 eini_path *path) {
  memset(t, 0, sizeof *t);
  memset(path, 0, sizeof *path);
  t->diag = diag;
  t->text = s;
  EINI_TRY(eini_path_steps(a, t, path));
  path->pos = EINI_NEW(a, int, t->nwhere);
  if (path->pos == NULL) return EIN_ERR_NO_MEMORY;
  for (int64_t k = 0; k < t->nwhere; k++) {
    const char *c = s + t->where[k];
    for (; eini_is_digit((unsigned char)*c); c++)  // what is larger than any position stays so
      if (path->pos[k] < INT_MAX / 16) path->pos[k] = 10 * path->pos[k] + (*c - '0');
  }
  return EIN_OK;
}

// Reads the path and its costs. Messages point into its text.
static ein_status eini_path_parse(eini_arena *a, eini_diag *diag, const char *s,
                                  const eini_net *net, eini_path *path) {
  eini_path_text t;
  int bad = -1;
  eini_diag_text(diag, s, (int64_t)strlen(s));
  EINI_TRY(eini_path_read(a, diag, s, &t, path));
  path->method = "user";
  ein_status st = eini_path_cost(a, net, path, &bad);
  if (st != EIN_ERR_ARGUMENT) return st;
  if (bad < 0)
    return eini_fail(diag, st, t.at, 1, "the last step makes the result",
                     "the path ends before or after %d operands are one", net->nterm);
  return eini_fail(diag, st, t.where[bad], 1,
                   "positions count the operands still there, from 0; results go to the end",
                   "position %d is not there, or twice in its step", path->pos[bad]);
}

// How a product is computed: as predicted to be fastest, along a path that a search finds, along
// the user's, or unsplit in one pass.
typedef enum eini_way {
  EINI_WAY_FASTEST, EINI_WAY_SEARCH, EINI_WAY_USER, EINI_WAY_UNSPLIT
} eini_way;

// Is the path left to the planner?
static int eini_path_auto(const ein_options *o) {
  return o->path == NULL || strcmp(o->path, "auto") == 0;
}

// The search options a user chose.
static ein_status eini_path_options(ein_ctx *ctx, eini_diag *diag, const ein_options *o,
                                    eini_path_opts *opts, eini_way *way) {
  static const char *const names[] = {"auto", "naive", "optimal", "dp", "greedy", "random"};
  static const eini_path_algo algos[] = {EINI_PATH_AUTO, EINI_PATH_NAIVE, EINI_PATH_OPTIMAL,
                                         EINI_PATH_DP, EINI_PATH_GREEDY, EINI_PATH_RANDOM};
  const char *p = o->path == NULL ? "auto" : o->path;
  memset(opts, 0, sizeof *opts);
  opts->goal = o->goal == EIN_GOAL_SIZE ? EINI_GOAL_SIZE
               : o->goal == EIN_GOAL_BYTES ? EINI_GOAL_BYTES : EINI_GOAL_FLOPS;
  opts->seconds = o->path_seconds;
  opts->steps = o->path_steps;
  opts->seed = o->seed;
  if (ctx != NULL) opts->now_fn = ctx->now_fn, opts->now_user = ctx->now_user;
  *way = EINI_WAY_UNSPLIT;
  if (strcmp(p, "none") == 0) return EIN_OK;
  *way = EINI_WAY_USER;
  if (p[0] != 0 && strchr("([ 0123456789", p[0]) != NULL) return EIN_OK;
  *way = EINI_WAY_SEARCH;
  if (strcmp(p, "auto") == 0 && o->goal == EIN_GOAL_FLOPS) *way = EINI_WAY_FASTEST;
  for (int i = 0; i < 6; i++) {
    opts->algo = algos[i];
    if (strcmp(p, names[i]) == 0) return EIN_OK;
  }
  return eini_fail(diag, EIN_ERR_ARGUMENT, -1, 0,
                   "auto, naive, none, optimal, dp, greedy, random, or a list like (0,1) (0,1)",
                   "no path method is called '%s'", p);
}
