// ================================================================================================
// >>scope  names, macros, coordinates
// Takes a statement's tree; gives a tree whose accesses are affine rows over numbered indices, with
// all extents known (GRAMMAR rules 1 to 6).
// ================================================================================================

static eini_sym *eini_sym_of(eini_prog *q, int sym) { return &q->names.sym[sym]; }

static int eini_find_var(const eini_prog *q, int sym, int mark) {
  for (int i = q->names.sym[sym].var; i != 0; i = q->var[i - 1].prev)
    if (q->var[i - 1].mark == mark) return i - 1;
  return -1;
}

// A mistake about a name: "'name' what".
static ein_status eini_perr_name(eini_parser *p, ein_status st, int64_t pos, int sym,
                                 const char *hint, const char *what) {
  return eini_perr(p, st, pos, p->names->sym[sym].n, hint, "'%.*s' %s", EINI_NAME_OF(p, sym), what);
}

static int eini_push_var(eini_prog *q, int sym, int mark, int kind, int64_t pos) {
  eini_parser *p = &q->p;
  if (p->names->sym[sym].cls != EINI_W_FREE)
    return eini_perr_name(p, EIN_ERR_NAME, pos, sym, NULL, "is a word of the language"), -1;
  eini_var *v = (eini_var *)eini_grow(p->arena, q->var, q->nvar, &q->capvar, sizeof *v);
  eini_var made = {sym, mark, p->names->sym[sym].var, kind, 0, 0, 0, 0, -1, pos,
                   p->names->sym[sym].n, NULL, -1, -1};
  if (v == NULL) return eini_pmem(p), -1;
  q->var = v;
  v[q->nvar] = made;
  p->names->sym[sym].var = (int)q->nvar + 1;
  return (int)q->nvar++;
}

static void eini_pop_var(eini_prog *q, int v) { q->names.sym[q->var[v].sym].var = q->var[v].prev; }

// The argument that a name stands for inside a macro, or NULL.
static eini_syn *eini_env_arg(const eini_env *env, int sym) {
  for (int i = 0; env != NULL && i < env->def->nparam; i++)
    if (env->def->param[i] == sym) return env->arg[i];
  return NULL;
}

static int eini_mark(const eini_env *env) { return env == NULL ? 0 : env->mark; }

// Counts the steps of macro expansion and bounds the depth of trees; 0 when out of bounds.
static int eini_step(eini_prog *q, const eini_syn *v, const eini_env *env) {
  if (q->p.st != EIN_OK) return 0;
  if ((env != NULL && q->expanded++ >= EINI_EXPAND_MAX) || q->p.depth > 12 * q->p.max_depth + 64) {
    eini_perr(&q->p, EIN_ERR_TOO_LARGE, EINI_AT(v), NULL, "macros expand to too much");
    return 0;
  }
  return 1;
}

static ein_status eini_too_wide(eini_parser *p, int64_t pos, int64_t len) {
  return eini_perr(p, EIN_ERR_TOO_LARGE, pos, len, NULL, "this does not fit 64 bits");
}

// The surroundings of a macro's body; 0 when v is no call of a macro (reported unless quiet).
static int eini_enter_def(eini_prog *q, const eini_syn *v, const eini_env *env, eini_env *in,
                          int quiet) {
  eini_parser *p = &q->p;
  const eini_sym *s = eini_sym_of(q, v->sym);
  if (s->kind == EINI_N_DEF && (env == NULL || s->id < env->def->stmt)) {
    in->up = env;
    in->def = q->def[s->id];
    in->arg = v->kid;
    in->mark = ++q->mark;
    if (v->n == in->def->nparam) return 1;
    eini_called f = eini_called_of(p, v);
    if (!quiet) eini_wrong_count(p, &f, in->def->nparam, NULL);
  } else if (!quiet && s->kind == EINI_N_DEF) {
    eini_perr_name(p, EIN_ERR_NAME, v->pos, v->sym, NULL,
                   "is used in its own or an earlier definition");
  } else if (!quiet && (s->kind == EINI_N_BAD || s->bad)) {
    p->st = EIN_ERR_NAME;
  } else if (!quiet) {
    eini_unknown_function(p, v);
  }
  return 0;
}

// ---- which indices does an expression bring in? ----

// Makes a variable of an index of an access that no scope binds. Variables before from that were
// not written as free or named indices do not count: one index cannot be reduced twice.
static void eini_scan_name(eini_prog *q, int sym, const eini_env *env, int kind, int64_t from,
                           int64_t pos) {
  const eini_sym *s = eini_sym_of(q, sym);
  int v = eini_find_var(q, sym, eini_mark(env));
  int again = v >= 0 && v < from &&
              (q->var[v].kind == EINI_V_UNNAMED || q->var[v].kind == EINI_V_IMPLICIT);
  if (s->kind == EINI_N_TENSOR || s->kind == EINI_N_PARAM || s->cls != EINI_W_FREE) return;
  if (v < 0 || again) eini_push_var(q, sym, eini_mark(env), kind, pos);
}

static void eini_scan(eini_prog *q, const eini_syn *v, const eini_env *env, int kind, int64_t from,
                      int coord) {
  if (!eini_step(q, v, env)) return;
  q->p.depth++;
  if (v->kind == EINI_S_NAME) {
    const eini_syn *arg = eini_env_arg(env, v->sym);
    if (arg != NULL) eini_scan(q, arg, env->up, kind, from, coord);
    else if (coord) eini_scan_name(q, v->sym, env, kind, from, v->pos);
  } else if (v->kind == EINI_S_MACRO) {
    for (int i = 0; i < v->nbind; i++) eini_scan_name(q, v->bind[i], env, kind, from, v->bpos[i]);
  } else if (v->kind == EINI_S_CALL && eini_sym_of(q, v->sym)->cls == EINI_W_FREE) {
    eini_env in;
    if (eini_enter_def(q, v, env, &in, 1)) eini_scan(q, in.def->kid[0], &in, kind, from, 0);
  } else if (v->kind == EINI_S_REDUCE) {
    int64_t first = q->nvar;
    for (int i = 0; i < v->nbind; i++)
      if (eini_push_var(q, v->bind[i], eini_mark(env), EINI_V_SCAN, v->bpos[i]) < 0) break;
    int64_t hidden = q->nvar;
    if (v->nbind > 0) eini_scan(q, v->kid[0], env, kind, from, 0);
    for (int64_t i = hidden - 1; i >= first; i--) {  // unlink below the variables found meanwhile
      int *link = &q->names.sym[q->var[i].sym].var;
      while (*link != (int)i + 1) link = &q->var[*link - 1].prev;
      *link = q->var[i].prev;
    }
  } else {
    for (int i = 0; i < v->n; i++)
      eini_scan(q, v->kid[i], env, kind, from, coord || v->kind == EINI_S_ACCESS);
  }
  q->p.depth--;
}

// ---- integer constants and affine coordinates ----

// What size(..) names: an index (its variable), or a number known now. -1 after a mistake.
static int eini_size_of(eini_prog *q, const eini_syn *v, const eini_env *env, int *var,
                        int64_t *value) {
  eini_parser *p = &q->p;
  int sym = v->sym;
  const eini_syn *arg = eini_env_arg(env, sym);
  while (arg != NULL && arg->kind == EINI_S_NAME) {
    sym = arg->sym;
    env = env->up;
    arg = eini_env_arg(env, sym);
  }
  const eini_sym *s = eini_sym_of(q, sym);
  *var = v->ival < 0 ? eini_find_var(q, sym, eini_mark(env)) : -1;
  *value = -1;
  if (s->kind == EINI_N_SIZE && v->ival < 0) *value = q->dim[s->id].value;
  if (s->kind == EINI_N_TENSOR && *var < 0) {
    const eini_tensor *t = &q->g->tensor[s->id];
    int axis = v->ival < 0 && t->rank == 1 ? 0 : (int)eini_min64(v->ival, INT_MAX);
    if (axis < 0 || axis >= t->rank) {
      return eini_perr(p, EIN_ERR_SHAPE, EINI_AT(v), "size(X, 0) is the extent of the first axis",
                       "'%s' has %d axes", t->name, t->rank), -1;
    }
    *value = t->shape[axis];
  }
  if (*var >= 0 || *value >= 0) return 0;
  if (s->kind == EINI_N_BAD || (s->bad && s->kind == EINI_N_NONE)) p->st = EIN_ERR_NAME;
  return eini_perr(p, EIN_ERR_NAME, EINI_AT(v), NULL, "'%.*s' is not a size, an index in scope or "
                   "a tensor", EINI_NAME_OF(p, sym)), -1;
}

typedef struct eini_rowbuf {
  eini_row row;
  int64_t cap, cap2;
} eini_rowbuf;

static ein_status eini_row_term(eini_prog *q, eini_rowbuf *b, int var, int64_t coef) {
  int *v = (int *)eini_grow(q->p.arena, b->row.var, b->row.n, &b->cap, sizeof *v);
  int64_t *c = (int64_t *)eini_grow(q->p.arena, b->row.coef, b->row.n, &b->cap2, sizeof *c);
  if (v == NULL || c == NULL) return eini_pmem(&q->p);
  b->row.var = v;
  b->row.coef = c;
  v[b->row.n] = var;
  c[b->row.n++] = coef;
  return EIN_OK;
}

static void eini_not_affine(eini_prog *q, const eini_syn *v, int sizes) {
  int access = v->kind == EINI_S_ACCESS;
  eini_perr(&q->p, sizes ? EIN_ERR_SHAPE : access ? EIN_ERR_UNSUPPORTED : EIN_ERR_SYNTAX,
            EINI_AT(v), !sizes ? "coordinates are sums of indices times integers, like 2*i+j-1" :
            v->kind == EINI_S_TERM ? "div(a,b) divides extents" : NULL, "%s",
            sizes ? "an extent is an expression of integers and sizes" :
            access ? "data-dependent coordinates are outside the language" :
            "this coordinate is not affine");
}

static int eini_const(eini_prog *q, const eini_syn *v, const eini_env *env, int sizes,
                      int64_t *out);
static void eini_affine(eini_prog *q, const eini_syn *v, const eini_env *env, int sizes,
                        int64_t scale, eini_rowbuf *b);

// Adds the value of a name that is no macro's parameter to a row; gives what is constant in it.
static int64_t eini_affine_name(eini_prog *q, const eini_syn *v, const eini_env *env, int sizes,
                                int64_t scale, eini_rowbuf *b) {
  eini_parser *p = &q->p;
  const eini_sym *s = eini_sym_of(q, v->sym);
  int var = eini_find_var(q, v->sym, eini_mark(env));
  char hint[128];
  if (sizes && s->kind == EINI_N_SIZE) return q->dim[s->id].value;
  if (sizes) {
    eini_not_affine(q, v, sizes);
  } else if (var >= 0) {
    eini_row_term(q, b, var, scale);
  } else if (s->kind == EINI_N_TENSOR || s->kind == EINI_N_PARAM) {
    eini_perr_name(p, EIN_ERR_UNSUPPORTED, v->pos, v->sym, NULL,
                   "is no index: data-dependent coordinates are outside the language");
  } else {
    snprintf(hint, sizeof hint, "name the reduction: sum[%.*s](..)", EINI_NAME_OF(p, v->sym));
    eini_perr_name(p, EIN_ERR_NAME, v->pos, v->sym, hint, "is an index that is not bound here");
  }
  return 0;
}

// Adds scale * a product to a row: at most one factor is not constant.
static void eini_affine_term(eini_prog *q, const eini_syn *v, const eini_env *env, int sizes,
                             int64_t scale, eini_rowbuf *b) {
  eini_rowbuf x, y;
  int over = 0;
  memset(&x, 0, sizeof x);
  for (int i = 0; i < v->n && q->p.st == EIN_OK; i++) {
    memset(&y, 0, sizeof y);
    eini_affine(q, v->kid[i], env, sizes, 1, &y);
    if (v->inv[i] || (x.row.n > 0 && y.row.n > 0)) eini_not_affine(q, v, sizes);
    else if (y.row.n > 0) x = y;
    else over |= eini_mul_overflow(scale, y.row.offset, &scale);
  }
  if (q->p.st != EIN_OK) return;
  if (x.row.n == 0) x.row.offset = 1;
  over |= eini_muladd_overflow(scale, x.row.offset, b->row.offset, &b->row.offset);
  for (int i = 0; i < x.row.n; i++) {
    over |= eini_mul_overflow(x.row.coef[i], scale, &x.row.coef[i]);
    eini_row_term(q, b, x.row.var[i], x.row.coef[i]);
  }
  if (over) eini_too_wide(&q->p, EINI_AT(v));
}

// Adds scale * v to a row. sizes: it is an extent, where declared sizes stand for their values.
static void eini_affine(eini_prog *q, const eini_syn *v, const eini_env *env, int sizes,
                        int64_t scale, eini_rowbuf *b) {
  eini_parser *p = &q->p;
  const eini_syn *arg = v->kind == EINI_S_NAME ? eini_env_arg(env, v->sym) : NULL;
  int64_t c = 0, d = 0, back;
  int var;
  if (!eini_step(q, v, env)) return;
  p->depth++;
  switch (v->kind) {
    case EINI_S_NUM:
      c = v->ival;
      if (v->exact) break;
      eini_perr(p, EIN_ERR_SYNTAX, EINI_AT(v), NULL, "an integer of 64 bits is needed here");
      break;
    case EINI_S_NAME:
      if (arg != NULL) eini_affine(q, arg, env->up, sizes, scale, b);
      else c = eini_affine_name(q, v, env, sizes, scale, b);
      break;
    case EINI_S_SIZE:
      if (eini_size_of(q, v, env, &var, &c) < 0) break;
      if (var >= 0 && q->var[var].extent >= 0) c = q->var[var].extent;
      if (c >= 0) break;
      eini_perr(p, EIN_ERR_SHAPE, EINI_AT(v), NULL, "the extent of '%.*s' is not known here",
                EINI_NAME_OF(p, v->sym));
      break;
    case EINI_S_PAREN: case EINI_S_SUM: case EINI_S_NEG:
      for (int i = 0; i < v->n && p->st == EIN_OK; i++) {
        if (eini_mul_overflow(scale, v->kind == EINI_S_NEG || v->inv[i] ? -1 : 1, &back))
          eini_too_wide(p, EINI_AT(v));
        else eini_affine(q, v->kid[i], env, sizes, back, b);
      }
      break;
    case EINI_S_TERM: eini_affine_term(q, v, env, sizes, scale, b); break;
    default:  // div and mod of constants
      if (v->kind != EINI_S_CALL || v->n != 2 ||
          (v->op != EIN_OP_FLOORDIV && v->op != EIN_OP_MOD) ||
          p->names->sym[v->sym].cls != EINI_W_OP) {
        eini_not_affine(q, v, sizes);
      } else if (eini_const(q, v->kid[0], env, sizes, &c) > 0 &&
                 eini_const(q, v->kid[1], env, sizes, &d) > 0 && d > 0) {
        back = eini_floor_div(c, d);
        c = v->op == EIN_OP_MOD ? c - back * d : back;
      } else {
        eini_perr(p, EIN_ERR_SHAPE, EINI_AT(v), NULL, "division by %lld", (long long)d);
      }
  }
  p->depth--;
  if (p->st == EIN_OK && eini_muladd_overflow(scale, c, b->row.offset, &b->row.offset))
    eini_too_wide(p, EINI_AT(v));
}

// One coordinate: every variable once, no zero coefficients, nothing near the limits of 64 bits.
static eini_row eini_affine_row(eini_prog *q, const eini_syn *v, const eini_env *env) {
  eini_rowbuf b;
  memset(&b, 0, sizeof b);
  eini_affine(q, v, env, 0, 1, &b);
  eini_row *r = &b.row;
  r->pos = v->pos;
  r->len = v->len;
  int n = 0, stamp = ++q->stamp, over = r->offset == INT64_MIN;
  for (int i = 0; i < r->n; i++) {
    eini_var *x = &q->var[r->var[i]];
    if (x->stamp == stamp) {
      over |= eini_add_overflow(r->coef[x->bound], r->coef[i], &r->coef[x->bound]);
      continue;
    }
    x->stamp = stamp;
    x->bound = n;
    r->var[n] = r->var[i];
    r->coef[n++] = r->coef[i];
  }
  r->n = 0;
  for (int i = 0; i < n; i++) {
    q->var[r->var[i]].bound = 0;
    over |= r->coef[i] == INT64_MIN;
    if (r->coef[i] == 0) continue;
    r->var[r->n] = r->var[i];
    r->coef[r->n++] = r->coef[i];
  }
  if (over) eini_too_wide(&q->p, r->pos, r->len);
  return *r;
}

// The value of an extent: 1, or -1 after a mistake.
static int eini_const(eini_prog *q, const eini_syn *v, const eini_env *env, int sizes,
                      int64_t *out) {
  eini_rowbuf b;
  memset(&b, 0, sizeof b);
  eini_affine(q, v, env, sizes, 1, &b);
  if (b.row.n > 0) eini_not_affine(q, v, sizes);
  *out = b.row.offset;
  return q->p.st == EIN_OK ? 1 : -1;
}

// ---- which indices does a resolved tree use? ----

typedef struct eini_vars {
  int *v;
  int64_t n, cap;
} eini_vars;

// Stamps the variables that a node itself names, and adds the new ones that are not bound.
static ein_status eini_own_vars(eini_prog *q, const eini_syn *v, eini_vars *u, int stamp) {
  int rank = v->kind == EINI_S_ACCESS && v->row != NULL ? q->g->tensor[v->id].rank : 0;
  int macro = v->kind == EINI_S_MACRO, index = v->kind == EINI_S_INDEX;
  for (int r = 0; r < (macro || index ? 1 : rank); r++) {
    const int *var = macro ? v->bind : index ? &v->id : v->row[r].var;
    for (int i = 0; i < (macro ? v->nbind : index ? 1 : v->row[r].n); i++) {
      eini_var *x = &q->var[var[i]];
      if (x->stamp == stamp || x->bound > 0) continue;
      x->stamp = stamp;
      if (u == NULL) continue;
      int *list = (int *)eini_grow(q->p.arena, u->v, u->n, &u->cap, sizeof *list);
      if (list == NULL) return eini_pmem(&q->p);
      u->v = list;
      list[u->n++] = var[i];
    }
  }
  return EIN_OK;
}

// In the order of the scope.
static void eini_vars_sort(eini_vars *u) {
  for (int64_t i = 1; i < u->n; i++) {
    int x = u->v[i];
    int64_t j = i;
    for (; j > 0 && u->v[j - 1] > x; j--) u->v[j] = u->v[j - 1];
    u->v[j] = x;
  }
}

static void eini_used(eini_prog *q, const eini_syn *v, eini_vars *u, int stamp) {
  eini_own_vars(q, v, u, stamp);
  for (int i = 0; v->kind == EINI_S_REDUCE && i < v->nbind; i++) q->var[v->bind[i]].bound++;
  for (int i = 0; i < v->n; i++) eini_used(q, v->kid[i], u, stamp);
  for (int i = 0; v->kind == EINI_S_REDUCE && i < v->nbind; i++) q->var[v->bind[i]].bound--;
}

// ---- names in expressions ----

// Reports a name that is no tensor to read, or, scalar, no value.
static eini_syn *eini_bad_name(eini_prog *q, const eini_syn *v, int scalar) {
  eini_parser *p = &q->p;
  const eini_sym *s = eini_sym_of(q, v->sym);
  const char *what = scalar ? "is no index in scope, param or scalar" : "is no tensor";
  const char *hint = NULL;
  char text[160];
  eini_near w;
  eini_near_init(&w, s->s, s->n);
  if (s->kind == EINI_N_BAD || (s->kind == EINI_N_NONE && s->ndef == 0 && s->bad))
    return p->st = EIN_ERR_NAME, (eini_syn *)NULL;  // reported where it failed
  if (s->kind == EINI_N_TENSOR) {
    snprintf(text, sizeof text, "has %d axes: write its coordinates in brackets",
             q->g->tensor[s->id].rank);
    what = text;
  } else if (s->kind == EINI_N_SIZE && scalar) {
    snprintf(text, sizeof text, "write size(%.*s)", EINI_NAME_OF(p, v->sym));
    hint = text;
    what = "is a size, not an index in scope";
  } else if (s->kind != EINI_N_NONE) {
    what = s->kind == EINI_N_PARAM ? "is a param: it has no axes" :
           s->kind == EINI_N_DEF ? "is a macro, not a tensor" : "is a size, not a tensor";
  } else if (s->ndef > 0) {
    what = "is used before its definition";
    hint = s->ndef > 1 ? "it may be read after its last piece" : NULL;
  } else {
    for (int64_t i = 0; i < eini_min64(p->names->n, 4096); i++) {
      const eini_sym *x = &p->names->sym[i];
      if (x->kind != EINI_N_NONE || x->var != 0) eini_near_try(&w, x->s, x->n);
    }
    hint = eini_near_hint(&w);
  }
  eini_perr_name(p, s->kind == EINI_N_TENSOR ? EIN_ERR_SHAPE : EIN_ERR_NAME, v->pos, v->sym, hint,
                 what);
  return NULL;
}

// A copy that means id, without children.
static eini_syn *eini_resolved(eini_prog *q, const eini_syn *v, int kind, int id) {
  eini_syn *r = eini_syn_new(&q->p, kind, v->pos);
  if (r == NULL) return NULL;
  *r = *v;
  r->kind = (unsigned char)kind;
  r->id = id;
  r->n = r->nbind = 0;
  return r;
}

// Gives a tree its children, or the only one.
static eini_syn *eini_adopt(eini_prog *q, eini_syn *r, const eini_kids *k, eini_syn *only) {
  eini_kids one = {NULL, NULL, 0, 0};
  if (k == NULL) eini_kids_add(&q->p, &one, only, 0);
  if (k == NULL) k = &one;
  if (r == NULL || q->p.st != EIN_OK) return NULL;
  r->kid = k->kid;
  r->inv = k->inv;
  r->n = (int)k->n;
  return r;
}

// A bare name: an index, a param or a tensor of rank 0.
static eini_syn *eini_resolve_name(eini_prog *q, const eini_syn *v, const eini_env *env) {
  int var = eini_find_var(q, v->sym, eini_mark(env));
  const eini_sym *s = eini_sym_of(q, v->sym);
  if (var >= 0) return eini_resolved(q, v, EINI_S_INDEX, var);
  if (s->kind == EINI_N_PARAM) return eini_resolved(q, v, EINI_S_PARAM, s->id);
  if (s->kind != EINI_N_TENSOR || q->g->tensor[s->id].rank > 0) return eini_bad_name(q, v, 1);
  eini_syn *r = eini_resolved(q, v, EINI_S_ACCESS, s->id);
  eini_kids_add(&q->p, &q->access, r, 0);
  return r;
}

static eini_syn *eini_resolve_access(eini_prog *q, const eini_syn *v, const eini_env *env) {
  eini_parser *p = &q->p;
  const eini_sym *s = eini_sym_of(q, v->sym);
  if (eini_env_arg(env, v->sym) != NULL)
    return eini_perr(p, EIN_ERR_NAME, EINI_AT(v), NULL, "a macro's parameter is a scalar"),
           (eini_syn *)NULL;
  if (s->kind != EINI_N_TENSOR) return eini_bad_name(q, v, 0);
  int id = s->id, rank = q->g->tensor[id].rank;
  if (v->n != rank) {
    eini_perr(p, EIN_ERR_SHAPE, EINI_AT(v), NULL, "'%.*s' has %d ax%cs, not %d",
              EINI_NAME_OF(p, v->sym), rank, rank == 1 ? 'i' : 'e', v->n);
    return NULL;
  }
  eini_syn *r = eini_resolved(q, v, EINI_S_ACCESS, id);
  eini_row *row = EINI_NEW(p->arena, eini_row, rank);
  if (r == NULL || row == NULL) return eini_pmem(p), (eini_syn *)NULL;
  r->row = row;
  for (int i = 0; i < rank && p->st == EIN_OK; i++) row[i] = eini_affine_row(q, v->kid[i], env);
  eini_kids_add(p, &q->access, r, 0);
  return r;
}

static eini_syn *eini_resolve(eini_prog *q, const eini_syn *v, const eini_env *env);  // trees nest

static eini_syn *eini_resolve_kids(eini_prog *q, const eini_syn *v, const eini_env *env) {
  eini_kids k = {NULL, NULL, 0, 0};
  for (int i = 0; i < v->n && q->p.st == EIN_OK; i++)
    eini_kids_add(&q->p, &k, eini_resolve(q, v->kid[i], env), v->inv[i]);
  return eini_adopt(q, eini_resolved(q, v, v->kind, v->id), &k, NULL);
}

// Variables of a reduction's list, extents evaluated in the scope around it.
static void eini_bind_named(eini_prog *q, const eini_syn *v, const eini_env *env, eini_syn *r) {
  eini_parser *p = &q->p;
  int64_t *extent = EINI_NEW(p->arena, int64_t, v->nbind), first = q->nvar;
  if (extent == NULL) eini_pmem(p);
  for (int i = 0; i < v->nbind && p->st == EIN_OK; i++) {
    extent[i] = -1;
    if (v->bext[i] != NULL && eini_const(q, v->bext[i], env, 1, &extent[i]) > 0 && extent[i] < 0)
      eini_perr(p, EIN_ERR_SHAPE, EINI_AT(v->bext[i]), NULL, "an extent is at least 0");
  }
  for (int i = 0; i < v->nbind && p->st == EIN_OK; i++) {
    if (eini_find_var(q, v->bind[i], eini_mark(env)) >= first || eini_env_arg(env, v->bind[i]))
      eini_perr_name(p, EIN_ERR_NAME, v->bpos[i], v->bind[i], NULL, "is an index bound already");
    int var = eini_push_var(q, v->bind[i], eini_mark(env), EINI_V_NAMED, v->bpos[i]);
    if (var < 0 || p->st != EIN_OK) return;
    q->var[var].extent = extent[i];
    if (extent[i] >= 0) q->var[var].axis = -2;
    r->bind[r->nbind++] = var;
  }
}

// Resolves v as what is folded by r over r's named indices, or over all that it brings in.
static eini_syn *eini_resolve_fold(eini_prog *q, const eini_syn *v, const eini_env *env,
                                   const eini_syn *binds, eini_syn *r, int kind) {
  eini_parser *p = &q->p;
  int64_t first = q->nvar;
  if (r == NULL) return NULL;
  if (kind != EINI_V_NAMED) eini_scan(q, v, env, kind, first, 0);
  r->bind = EINI_NEW(p->arena, int, q->nvar - first + binds->nbind);
  if (r->bind == NULL) return eini_pmem(p), (eini_syn *)NULL;
  if (kind == EINI_V_NAMED) eini_bind_named(q, binds, env, r);
  for (int64_t i = first; i < q->nvar && kind != EINI_V_NAMED; i++)
    if (q->var[i].kind == kind) r->bind[r->nbind++] = (int)i;
  if (kind == EINI_V_UNNAMED && r->nbind == 0) {
    eini_perr(p, EIN_ERR_NAME, EINI_AT(r), "name the reduction: sum[j](..)",
              "%.*s has nothing to reduce: every index is in scope", EINI_NAME_OF(p, r->sym));
  }
  eini_syn *x = p->st == EIN_OK ? eini_resolve(q, v, env) : NULL;
  for (int i = r->nbind - 1; i >= 0; i--) eini_pop_var(q, r->bind[i]);
  return x;
}

static eini_syn *eini_resolve_reduce(eini_prog *q, const eini_syn *v, const eini_env *env) {
  eini_syn *r = eini_resolved(q, v, EINI_S_REDUCE, -1);
  int cls = eini_sym_of(q, v->sym)->cls;
  if (r == NULL) return NULL;
  r->op = cls == EINI_W_NORM ? EIN_FOLD_SUM : cls == EINI_W_MONOID ? EIN_FOLD_USER + v->op : v->op;
  r->exact = cls == EINI_W_NORM;  // a square root stands around it
  return eini_adopt(q, r, NULL, eini_resolve_fold(q, v->kid[0], env, v, r, v->nbind > 0 ?
                                                  EINI_V_NAMED : EINI_V_UNNAMED));
}

static eini_syn *eini_resolve_macro(eini_prog *q, const eini_syn *v, const eini_env *env) {
  eini_parser *p = &q->p;
  int least = eini_macros[v->op].least, most = eini_macros[v->op].most;
  char hint[96];
  if (v->n < least || v->n > most) {
    eini_called f = eini_called_of(p, v);
    const char *text = eini_macros[v->op].text;  // up to its ';' the parameters
    snprintf(hint, sizeof hint, "%s[j](%.*s)", eini_macros[v->op].name, (int)strcspn(text, ";"),
             text);
    eini_wrong_count(p, &f, least, least < most ? hint : NULL);
  }
  eini_syn *r = p->st == EIN_OK ? eini_resolve_kids(q, v, env) : NULL;
  if (r == NULL) return NULL;
  r->bind = EINI_NEW(p->arena, int, v->nbind);
  if (r->bind == NULL) return eini_pmem(p), (eini_syn *)NULL;
  for (int stamp = ++q->stamp; r->nbind < v->nbind; r->nbind++) {
    int i = r->nbind, var = eini_find_var(q, v->bind[i], eini_mark(env));
    if (var < 0 || q->var[var].stamp == stamp) {
      eini_perr_name(p, EIN_ERR_NAME, v->bpos[i], v->bind[i], NULL,
                     "is no index in scope, or occurs twice");
      return NULL;
    }
    q->var[var].stamp = stamp;
    r->bind[i] = var;
  }
  return r;
}

static eini_syn *eini_resolve(eini_prog *q, const eini_syn *v, const eini_env *env) {
  if (!eini_step(q, v, env)) return NULL;
  eini_syn *r = NULL, *arg;
  eini_env in;
  int var;
  q->p.depth++;
  switch (v->kind) {
    case EINI_S_NAME:
      arg = eini_env_arg(env, v->sym);
      r = arg != NULL ? eini_resolve(q, arg, env->up) : eini_resolve_name(q, v, env);
      break;
    case EINI_S_ACCESS: r = eini_resolve_access(q, v, env); break;
    case EINI_S_SIZE:
      r = eini_resolved(q, v, EINI_S_SIZE, -1);
      if (r != NULL && eini_size_of(q, v, env, &var, &r->ival) == 0) r->id = var;
      break;
    case EINI_S_REDUCE: r = eini_resolve_reduce(q, v, env); break;
    case EINI_S_MACRO: r = eini_resolve_macro(q, v, env); break;
    default:
      if (v->kind != EINI_S_CALL || eini_sym_of(q, v->sym)->cls != EINI_W_FREE) {
        r = eini_resolve_kids(q, v, env);
      } else if (eini_enter_def(q, v, env, &in, 0)) {
        r = eini_adopt(q, eini_resolved(q, v, EINI_S_BODY, -1), NULL,
                       eini_resolve(q, in.def->kid[0], &in));
      }
  }
  q->p.depth--;
  return q->p.st == EIN_OK ? r : NULL;
}

// ---- implicit sums (rule 4) ----

// Stamps the variables of accesses that are factors of a term.
static void eini_mark_factors(eini_prog *q, const eini_syn *v, int stamp) {
  int deeper = v->kind == EINI_S_PAREN || v->kind == EINI_S_NEG || v->kind == EINI_S_TERM;
  for (int i = 0; i < v->n && deeper; i++)
    if (!v->inv[i]) eini_mark_factors(q, v->kid[i], stamp);
  if (v->kind != EINI_S_INDEX) eini_own_vars(q, v, NULL, stamp);
}

// No parenthesised sum of a term has addends with and addends without an implicit index.
static void eini_check_addends(eini_prog *q, const eini_syn *v, const eini_syn *term) {
  eini_parser *p = &q->p;
  const eini_syn *sum = v->kind == EINI_S_PAREN && v->kid[0]->kind == EINI_S_SUM ? v->kid[0] : NULL;
  eini_vars u = {NULL, 0, 0};
  char hint[256];
  for (int i = 0; sum != NULL && i < sum->n; i++) eini_used(q, sum->kid[i], &u, ++q->stamp);
  for (int64_t i = 0; i < u.n; i++) q->var[u.v[i]].col++;
  for (int64_t i = 0; i < u.n; i++) {
    const eini_var *x = &q->var[u.v[i]];
    int len = eini_cut(p->s + term->pos, term->len);
    if (x->kind != EINI_V_IMPLICIT || x->col == 0 || x->col == sum->n) continue;
    snprintf(hint, sizeof hint, "write sum[%.*s](%.*s%s), or multiply out so that each addend is a "
             "term", EINI_NAME_OF(p, x->sym), len, p->s + term->pos, len < term->len ? ".." : "");
    eini_perr(p, EIN_ERR_NAME, EINI_AT(sum), hint, "'%.*s' is summed implicitly but is missing "
              "from an addend of this sum", EINI_NAME_OF(p, x->sym));
  }
  for (int64_t i = 0; i < u.n; i++) q->var[u.v[i]].col = 0;
  for (int i = 0; i < v->n && p->st == EIN_OK; i++) eini_check_addends(q, v->kid[i], term);
}

// The implicit index that two accesses of a tree have, or -1.
static int eini_index_twice(eini_prog *q, const eini_syn *v, int stamp) {
  int found = -1, rank = v->kind == EINI_S_ACCESS ? q->g->tensor[v->id].rank : 0;
  for (int r = 0; r < rank; r++) {
    for (int i = 0; i < v->row[r].n; i++) {
      eini_var *x = &q->var[v->row[r].var[i]];
      if (x->stamp == stamp && x->first != v->pos && x->kind == EINI_V_IMPLICIT)
        found = v->row[r].var[i];
      if (x->stamp != stamp) x->first = v->pos;
      x->stamp = stamp;
    }
  }
  for (int i = 0; i < v->n && found < 0; i++) found = eini_index_twice(q, v->kid[i], stamp);
  return found;
}

// No function of a term has an implicit index in two accesses of one argument: f(A[i,j]*B[j,k])
// reads as f of a contraction.
static void eini_check_arguments(eini_prog *q, const eini_syn *v, const eini_syn *term) {
  eini_parser *p = &q->p;
  char hint[256];
  int twice = -1, len = eini_cut(p->s + term->pos, term->len);
  for (int i = 0; i < v->n && v->kind == EINI_S_CALL && twice < 0; i++)
    twice = eini_index_twice(q, v->kid[i], ++q->stamp);
  // An argument within which nothing is wrong holds no function that is.
  for (int i = 0; i < v->n && p->st == EIN_OK && (v->kind != EINI_S_CALL || twice >= 0); i++)
    eini_check_arguments(q, v->kid[i], term);
  if (twice < 0 || p->st != EIN_OK) return;
  const eini_var *x = &q->var[twice];
  snprintf(hint, sizeof hint, "write %.*s(sum[%.*s](..)), or sum[%.*s](%.*s%s)",
           EINI_NAME_OF(p, v->sym), EINI_NAME_OF(p, x->sym), EINI_NAME_OF(p, x->sym), len,
           p->s + term->pos, len < term->len ? ".." : "");
  eini_perr(p, EIN_ERR_NAME, EINI_AT(v), hint, "'%.*s' is summed implicitly, but this %.*s() has "
            "it in two accesses of one argument", EINI_NAME_OF(p, x->sym), EINI_NAME_OF(p, v->sym));
}

// A term of the right side: itself, or a sum over the indices that only it brings in.
static eini_syn *eini_resolve_term(eini_prog *q, const eini_syn *v) {
  eini_parser *p = &q->p;
  eini_syn *r = eini_resolved(q, v, EINI_S_REDUCE, -1);
  eini_syn *x = eini_resolve_fold(q, v, NULL, r, r, EINI_V_IMPLICIT);
  if (x == NULL || r->nbind == 0) return x;
  r->op = EIN_FOLD_SUM;
  r->exact = 0;
  int stamp = ++q->stamp, len = eini_cut(p->s + x->pos, x->len);
  char hint[256];
  eini_mark_factors(q, x, stamp);
  for (int i = 0; i < r->nbind; i++) {
    const eini_var *y = &q->var[r->bind[i]];
    if (y->stamp == stamp) continue;
    snprintf(hint, sizeof hint, "write sum[%.*s](%.*s%s), or put the sum inside: f(sum[%.*s](..))",
             EINI_NAME_OF(p, y->sym), len, p->s + x->pos, len < x->len ? ".." : "",
             EINI_NAME_OF(p, y->sym));
    eini_perr_name(p, EIN_ERR_NAME, y->pos, y->sym, hint, "is not bound: it occurs in no factor "
                   "that is a plain access, so no sum is implied");
  }
  eini_check_addends(q, x, x);
  if (p->st == EIN_OK) eini_check_arguments(q, x, x);
  return eini_adopt(q, r, NULL, x);
}

// Rule 3: an index reduced by an unnamed reduction occurs nowhere else in the statement.
static void eini_check_unnamed(eini_prog *q) {
  eini_parser *p = &q->p;
  for (int64_t i = 0; i < q->nvar; i++)
    if (q->var[i].kind != EINI_V_SCAN && q->var[i].mark == 0) p->names->sym[q->var[i].sym].nindex++;
  for (int64_t i = 0; i < q->nvar; i++) {
    const eini_var *x = &q->var[i];
    if (x->kind != EINI_V_UNNAMED || x->mark != 0 || p->names->sym[x->sym].nindex < 2) continue;
    eini_perr_name(p, EIN_ERR_NAME, x->pos, x->sym, "name the reductions: sum[j](..)",
                   "is reduced here without being named, and used outside the parentheses");
  }
  for (int64_t i = 0; i < q->nvar; i++) p->names->sym[q->var[i].sym].nindex = 0;
}
