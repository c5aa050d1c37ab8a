// Rules on programs: where each fires and where it must not, with the reason; and random programs
// and graphs, on which both sides agree by the oracle, bit for bit where every operation stays. The
// side after is read from its text, so that the text is proved to say what the graph is. Each rule
// has as many programs in which it fires.
//
//   test_rewrite [programs] [seed]    default: 1000 random ones from seed 1
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "oracle.h"
#include "check.h"
#include "util.h"
#include "random_graph.h"

// ---- both sides ---------------------------------------------------------------------------------

typedef struct side {
  const ein_graph *g;
  void **data;
  double **err;
} side;

static uint64_t name_seed(const char *s, uint64_t seed) {
  for (; *s; s++) seed = eini_mix(seed, (uint64_t)(unsigned char)*s);
  return seed;
}

static side side_make(const ein_graph *g, uint64_t seed) {
  side s = {g, (void **)calloc((size_t)g->ntensor + 1, sizeof(void *)),
            (double **)calloc((size_t)g->ntensor + 1, sizeof(double *))};
  ein_scalar param[8];
  memset(param, 0, sizeof param);
  for (int t = 0; t < g->ntensor; t++) {
    const eini_tensor *x = &g->tensor[t];
    if (x->shape == NULL) continue;
    const int64_t n = orc_count(x);
    s.data[t] = orc_alloc(n, 16);
    s.err[t] = (double *)orc_alloc(n, sizeof(double));
    if (x->role == EIN_ROLE_INPUT)
      orc_random_fill(x->dtype, n, s.data[t], name_seed(x->name, seed));
  }
  for (int k = 0; k < g->nparam && k < 8; k++) param[k] = g->param[k].value;
  orc_one_pass = 1;
  orc_eval_err(g, s.data, s.err, param);
  orc_one_pass = 0;
  return s;
}

static void side_free(side *s) {
  for (int t = 0; t < s->g->ntensor; t++) {
    free(s->data[t]);
    free(s->err[t]);
  }
  free(s->data);
  free(s->err);
}

static char *text_of(const ein_graph *g) {
  const size_t n = ein_graph_print(g, NULL, 0);
  char *s = (char *)malloc(n + 1);
  (void)ein_graph_print(g, s, n + 1);
  return s;
}

// Is every value that a side stores finite?
static int side_finite(const side *s) {
  int all = 1;
  for (int t = 0; t < s->g->ntensor && all; t++) {
    const eini_tensor *x = &s->g->tensor[t];
    for (int64_t k = 0; s->data[t] != NULL && eini_kind_of(x->dtype) >= EINI_KREAL &&
                    k < orc_count(x); k++) {
      const orc_val v = orc_load(x->dtype, s->data[t], k);
      all &= v.re - v.re == 0 && v.im - v.im == 0;
    }
  }
  return all;
}

// Do the outputs agree? exact: bit for bit.
static int sides_agree(const side *a, const side *b, int exact) {
  int all = 1;
  for (int t = 0; t < a->g->ntensor; t++) {
    const eini_tensor *x = &a->g->tensor[t];
    int u = 0;
    if (x->role != EIN_ROLE_OUTPUT) continue;
    while (u < b->g->ntensor && strcmp(b->g->tensor[u].name, x->name) != 0) u++;
    if (u == b->g->ntensor || b->g->tensor[u].dtype != x->dtype ||
        orc_count(&b->g->tensor[u]) != orc_count(x)) return printf("no output %s\n", x->name), 0;
    const int64_t n = orc_count(x);
    for (int64_t k = 0; k < n && !exact; k++) a->err[t][k] += b->err[u][k];
    all &= orc_compare_err(x->dtype, n, b->data[u], a->data[t], exact ? NULL : a->err[t]);
    for (int64_t k = 0; k < n && !exact; k++) a->err[t][k] -= b->err[u][k];
  }
  return all;
}

// Tensors that leave elements out have no text.
static int has_text(const ein_graph *g) {
  for (int t = 0; t < g->ntensor; t++)
    if (g->tensor[t].partial) return 0;
  return 1;
}

// A graph again from its text.
static ein_graph *from_text(ein_ctx *ctx, const ein_graph *g) {
  ein_program_desc d;
  ein_graph *made = NULL;
  char *text = text_of(g);
  memset(&d, 0, sizeof d);
  d.text = text;
  const int parsed = ein_graph_parse(ctx, &d, &made) == EIN_OK;
  CHECK(parsed);
  if (!parsed) printf("%s%s\n", text, ein_ctx_message(ctx));
  free(text);
  return made;
}

// ---- places -------------------------------------------------------------------------------------

#define PLACES 4096

typedef struct listed {
  int n;
  ein_rewrite v[PLACES];
} listed;

static void list_one(const ein_rewrite *w, void *user) {
  listed *x = (listed *)user;
  if (x->n < PLACES) x->v[x->n++] = *w;
}

static int fired[64], agreed[64], rules;

static int rule_number(const char *name) {
  int k = 0;
  while (strcmp(ein_rewrite_rule(k, NULL, NULL), name) != 0) k++;
  return k;
}

static int proved[64], mutants, survived;

// The program after with one character changed: if it is proved equal, it agrees.
static void check_mutant(ein_ctx *ctx, const ein_graph *g, const ein_graph *made, const side *was,
                         uint64_t seed) {
  ein_program_desc d;
  ein_graph *other = NULL;
  char *text = text_of(made);
  const char *body = strstr(text, "\n");
  while (body != NULL && strncmp(body + 1, "input", 5) == 0) body = strstr(body + 1, "\n");
  const int from = body == NULL ? 0 : (int)(body - text), n = (int)strlen(text);
  for (int tries = 0; tries < 30 && other == NULL && from < n; tries++) {
    char *at = &text[draw(from, n - 1)], old = *at;
    if (old >= '0' && old <= '9') *at = (char)('0' + (old - '0' + draw(1, 9)) % 10);
    else if (old == '+') *at = chance(50) ? '-' : '*';
    else if (old >= 'i' && old <= 'k' && !chance(50)) *at = (char)('i' + (old - 'i' + 1) % 3);
    else continue;
    memset(&d, 0, sizeof d);
    d.text = text;
    if (ein_graph_parse(ctx, &d, &other) != EIN_OK) *at = old;
  }
  free(text);
  if (other == NULL) return;
  mutants++;
  if (ein_rewrite_equal(ctx, g, other) == EIN_OK) {
    side is = side_make(other, seed);
    const int agree = sides_agree(was, &is, 0);
    survived++;
    CHECK(agree);
    if (!agree) {
      char *before = text_of(g), *after = text_of(other);
      printf("proved equal, and is not:\n%s---\n%s", before, after);
      free(before);
      free(after);
    }
    side_free(&is);
  }
  ein_graph_destroy(other);
}

// One place of a graph: the graph after, which agrees with `was`; NULL after a failure. Identities
// of real numbers are compared where all numbers are finite.
static ein_graph *check_place(ein_ctx *ctx, const ein_graph *g, const side *was,
                              const ein_rewrite *w, int exact, uint64_t seed) {
  ein_graph *made = NULL;
  CHECK(ein_rewrite_apply(ctx, g, w->rule, w->stmt, w->part, &made) == EIN_OK);
  if (made == NULL) return printf("%s: %s\n", w->rule, ein_ctx_message(ctx)), (ein_graph *)NULL;
  fired[rule_number(w->rule)]++;
  ein_graph *read = has_text(made) ? from_text(ctx, made) : NULL;
  proved[rule_number(w->rule)] += ein_rewrite_equal(ctx, g, made) == EIN_OK;
  if (read != NULL) check_mutant(ctx, g, made, was, seed);
  side is = side_make(read != NULL ? read : made, seed);
  const int compared = w->kind < 2 || (side_finite(was) && side_finite(&is));
  const int agree = !compared || sides_agree(was, &is, exact && w->kind == 0);
  CHECK(agree);
  agreed[rule_number(w->rule)] += compared && agree;
  if (!agree) {
    char *before = text_of(g), *after = text_of(made);
    printf("%s of statement %lld, part %d:\n%s---\n%s", w->rule, (long long)w->stmt, w->part,
           before, after);
    free(before);
    free(after);
  }
  side_free(&is);
  ein_graph_destroy(read);
  return made;
}

// All places of a graph, and one chain of rewrites.
static void check_graph(ein_ctx *ctx, const ein_graph *g, uint64_t seed) {
  static listed all;
  side was = side_make(g, seed);
  all.n = 0;
  CHECK(ein_rewrites(ctx, g, 2, 0, list_one, &all) == EIN_OK);
  for (int k = 0; k < all.n; k++) {
    if (all.n > 24 && !chance(100 * 24 / all.n + 1)) continue;
    ein_graph_destroy(check_place(ctx, g, &was, &all.v[k], 1, seed));
  }
  ein_graph *at = NULL;
  int exact = 1;
  for (int step = 0; step < 5 && all.n > 0; step++) {
    const ein_rewrite w = all.v[draw(0, all.n - 1)];
    if (w.kind == 2) break;
    exact &= w.kind == 0;
    ein_graph *next = check_place(ctx, at == NULL ? g : at, &was, &w, exact, seed);
    ein_graph_destroy(at);
    at = next;
    if (at == NULL) break;
    all.n = 0;
    CHECK(ein_rewrites(ctx, at, 1, 0, list_one, &all) == EIN_OK);
  }
  ein_graph_destroy(at);
  side_free(&was);
}

// ---- random programs ----------------------------------------------------------------------------

typedef struct writer {
  char s[8192];
  size_t n;
} writer;

EINI_PRINTF(2, 3) static void put(writer *w, const char *format, ...) {
  va_list args;
  va_start(args, format);
  w->n += (size_t)vsnprintf(w->s + w->n, sizeof w->s - w->n, format, args);
  va_end(args);
}

typedef struct known {  // a tensor whose axes are letters of "ijk"
  char name[8];
  int axes[3], rank;
} known;

static known have[32];
static int nhave;
static int extent[3];

static void put_access(writer *w, const known *t) {
  put(w, "%s[", t->name);
  for (int r = 0; r < t->rank; r++) put(w, "%s%c", r > 0 ? "," : "", "ijk"[t->axes[r]]);
  put(w, "]");
}

// An expression over letters of a mask.
static void put_expr(writer *w, int mask, int depth) {
  static const char *const of[] = {"exp", "tanh", "abs", "floor", "-", "sqrt"};
  const int kind = depth <= 0 ? 0 : (int)draw(0, 13), letter = (int)draw(0, 2);
  if (kind <= 2) {
    for (int tries = 0; tries < 20; tries++) {
      const known *t = &have[draw(0, nhave - 1)];
      int fits = 1;
      for (int r = 0; r < t->rank; r++) fits &= mask >> t->axes[r] & 1;
      if (!fits) continue;
      put_access(w, t);
      return;
    }
    put(w, "%d", (int)draw(1, 3));
  } else if (kind <= 6) {
    put(w, "(");
    put_expr(w, mask, depth - 1);
    put(w, kind <= 4 ? "*" : kind == 5 ? "+" : "-");
    put_expr(w, mask, depth - 1);
    put(w, ")");
  } else if (kind == 7) {
    const int f = (int)draw(0, 5);
    put(w, f == 5 ? "%s(1.5+abs(" : "%s(", of[f]);
    put_expr(w, mask, depth - 1);
    put(w, f == 5 ? "))" : ")");
  } else if (kind == 8) {
    static const char *const tail[] = {"*1", "/4", "-0", "+0", "*0", "/3", "*2.0", "+0.5"};
    put_expr(w, mask, 0);
    put(w, "%s", tail[draw(0, 7)]);
  } else if (kind == 9 && mask >> letter & 1) {
    put(w, "where(%c<%d, ", "ijk"[letter], (int)draw(0, 6));
    put_expr(w, mask, depth - 1);
    put(w, ", ");
    put_expr(w, mask, depth - 1);
    put(w, ")");
  } else if (kind == 10 && mask >> letter & 1) {
    put(w, "(%c+1)", "ijk"[letter]);
  } else if (kind == 11) {
    known *t = &have[draw(0, nhave - 1)];
    int fits = 1;
    for (int r = 0; r < t->rank; r++) fits &= mask >> t->axes[r] & 1;
    if (!fits) {
      put_expr(w, mask, 0);
      return;
    }
    put(w, "(");
    put_access(w, t);
    put(w, "*");
    put_expr(w, mask, 0);
    put(w, "+");
    put_access(w, t);
    put(w, "*");
    put_expr(w, mask, 0);
    put(w, ")");
  } else {
    put_expr(w, mask, 0);
    put(w, "*");
    put_expr(w, mask, 0);
    put(w, "*");
    put_expr(w, mask, 0);
  }
}

static void put_left(writer *w, const known *t, int piece, int half) {
  put(w, "%s[", t->name);
  for (int r = 0; r < t->rank; r++) {
    const int c = t->axes[r], n = r > 0 || piece < 0 ? extent[c] : half;
    if (r == 0 && piece == 1) put(w, "%c+%d", "ijk"[c], half);
    else put(w, "%s%c=%d", r > 0 ? "," : "", "ijk"[c], n);
  }
  put(w, "]");
  if (chance(15)) put(w, " : %s", chance(50) ? "f16" : "f32");
  put(w, " = ");
}

// One statement; like an earlier one, in two pieces, or with a fold, sometimes.
static void put_stmt(writer *w, int number) {
  static const char *const folds[] = {"sum", "sum", "sum", "max", "min", "mean"};
  known t;
  writer e = {{0}, 0};
  int mask = (int)draw(0, 7), free = 0;
  memset(&t, 0, sizeof t);
  snprintf(t.name, sizeof t.name, "t%d", number);
  for (int c = 0; c < 3; c++)
    if (mask >> c & 1 && chance(70)) t.axes[t.rank++] = c, free |= 1 << c;
  if (free != mask) {
    put(&e, "%s[", folds[draw(0, 5)]);
    for (int c = 0, n = 0; c < 3; c++)
      if ((mask & ~free) >> c & 1) put(&e, "%s%c=%d", n++ ? "," : "", "ijk"[c], extent[c]);
    put(&e, "](");
  }
  put_expr(&e, mask, (int)draw(1, 3));
  if (free != mask) put(&e, ")");
  const int c = t.rank > 0 ? t.axes[0] : 0;
  if (t.rank > 0 && extent[c] > 1 && chance(20)) {  // pieces that a reader may tell apart
    const int half = (int)draw(1, extent[c] - 1);
    known same = t;
    put_left(w, &same, 0, half);
    put(w, "%d*%c", (int)draw(1, 2), "ijk"[c]);
    put(w, "\n");
    put_left(w, &same, 1, half);
    put(w, "%d*%c for %c=%d\n", (int)draw(1, 2), "ijk"[c], "ijk"[c], extent[c] - half);
  } else {
    put_left(w, &t, -1, 0);
    put(w, "%s\n", e.s);
    if (chance(15) && number < 20) {  // once more
      known again = t;
      snprintf(again.name, sizeof again.name, "u%d", number);
      put_left(w, &again, -1, 0);
      put(w, "%s\n", e.s);
      have[nhave++] = again;
    }
  }
  have[nhave++] = t;
}

static void put_for(writer *w, const char *rule);

// With statements for a rule at its end, and their result alone observed; NULL: any.
static ein_graph *random_program(ein_ctx *ctx, const char *rule) {
  writer w = {{0}, 0};
  ein_program_desc d;
  ein_graph *g = NULL;
  nhave = 0;
  for (int c = 0; c < 3; c++) extent[c] = (int)draw(1, 5);
  for (int k = 0; k < 4; k++) {
    known t;
    memset(&t, 0, sizeof t);
    snprintf(t.name, sizeof t.name, "A%d", k);
    put(&w, "input %s[", t.name);
    for (int c = 0; c < 3; c++) {
      if (!chance(55)) continue;
      put(&w, "%s%d", t.rank > 0 ? "," : "", extent[c]);
      t.axes[t.rank++] = c;
    }
    put(&w, "] : %s\n", k == 3 && chance(30) ? "i64" : chance(25) ? "f32" : "f64");
    have[nhave++] = t;
  }
  const int n = (int)draw(rule == NULL ? 2 : 0, rule == NULL ? 6 : 2);
  for (int k = 0; k < n; k++) put_stmt(&w, k);
  if (rule != NULL) put_for(&w, rule);
  if (rule == NULL) put(&w, "output %s", have[nhave - 1].name);
  if (rule == NULL && nhave > 6 && chance(40)) put(&w, ", %s", have[nhave - 2].name);
  put(&w, "\n");
  memset(&d, 0, sizeof d);
  d.text = w.s;
  if (ein_graph_parse(ctx, &d, &g) != EIN_OK) return NULL;
  return g;
}

// ---- a thousand programs for each rule ----------------------------------------------------------

// Two pieces of one expression over an index, and what reads them.
static void put_halves(writer *w, char i, int ni, const char *s) {
  const int half = ni > 1 ? (int)draw(1, ni - 1) : 1;
  put(w, "ra[%c=%d] = %s\n", i, half, s);
  if (ni > half) put(w, "ra[%c+%d] = ", i, half);
  for (; ni > half && *s != 0; s++) {
    if (*s == i) put(w, "(%c+%d)", i, half);
    else put(w, "%c", *s);
  }
  if (ni > half) put(w, " for %c=%d\n", i, ni - half);
  put(w, "r[%c=%d] = ra[%c]*ra[%c]\n", i, ni, i, i);
}

// Statements in which a rule finds something to do, with expressions drawn at random.
static void put_for(writer *w, const char *rule) {
  static const char *const folds[] = {"sum", "max", "min"};
  const char *fold = folds[draw(0, 2)];
  const int c = (int)draw(0, 2), d = (c + 1 + (int)draw(0, 1)) % 3, e = 3 - c - d;
  const char i = "ijk"[c], j = "ijk"[d], k = "ijk"[e];
  const int ni = extent[c], nj = extent[d], nk = extent[e];
  writer x = {{0}, 0}, y = {{0}, 0}, z = {{0}, 0};
  put_expr(&x, 1 << c | 1 << d, 1);
  put_expr(&y, 1 << d, 1);
  put_expr(&z, 1 << c, 1);
  if (strcmp(rule, "reuse") == 0)
    put(w, "ra[%c=%d,%c=%d] = %s\nrb[%c=%d,%c=%d] = %s\nr[%c,%c] = ra[%c,%c] + 2*rb[%c,%c]\n", i,
        ni, j, nj, x.s, i, ni, j, nj, x.s, i, j, i, j, i, j);
  else if (strcmp(rule, "split") == 0)
    put(w, "r[%c=%d] = sum[%c=%d,%c=%d]((%s)*(%c+1)*(%s))\n", i, ni, j, nj, k, nk, x.s, k, y.s);
  else if (strcmp(rule, "join") == 0)
    put(w, "ra[%c=%d,%c=%d] : f64 = %s[%c=%d](%s + %c)\nr[%c=%d] : f64 = %s[%c=%d](ra[%c,%c])\n", i,
        ni, j, nj, fold, k, nk, x.s, k, i, ni, fold, j, nj, i, j);
  else if (strcmp(rule, "hoist") == 0)
    put(w, "r[%c=%d] = sum[%c=%d]((%s)*(%s))\n", i, ni, j, nj, z.s, x.s);
  else if (strcmp(rule, "factor") == 0)
    put(w, "ra[%c=%d] = %s\nr[%c=%d,%c=%d] = ra[%c]*(%s) %c (%s)*ra[%c]\n", j, nj, y.s, i, ni, j,
        nj, j, x.s, chance(50) ? '+' : '-', z.s, j);
  else if (strcmp(rule, "identity") == 0)
    put(w, "r[%c=%d] = (%s)*1/%d\n", i, ni, z.s, 1 << draw(0, 4));
  else if (strcmp(rule, "constants") == 0)
    put(w, "r[%c=%d] = where(%c < %d, %s, %d+2)\n", i, ni, i, ni, z.s, (int)draw(1, 9));
  else if (strcmp(rule, "relax") == 0)
    put(w, "r[%c=%d,%c=%d] = (%s)/%d.0 + (%s)\n", i, ni, j, nj, x.s, 3 + 2 * (int)draw(0, 20), y.s);
  else if (strcmp(rule, "recompute") == 0)
    put(w, "ra[%c=%d] = %s\nrb[%c=%d] = ra[%c]+1\nr[%c=%d] = ra[%c]*rb[%c]\n", i, ni, z.s, i, ni, i,
        i, ni, i, i);
  else if (strcmp(rule, "inline") == 0)
    put(w, "ra[%c=%d] = %s\nr[%c=%d,%c=%d] = ra[%c]*(%s)\n", j, nj, y.s, i, ni, j, nj, j, x.s);
  else if (strcmp(rule, "outline") == 0)
    put(w, "r[%c=%d,%c=%d] = exp((%s)*(%c+1))*(%s)*(%c+2)\n", i, ni, j, nj, y.s, j, x.s, i);
  else if (strcmp(rule, "merge") == 0)
    put_halves(w, i, ni, z.s);
  else
    put(w, "r[%c=%d] = sum[%c=%d]((%s)*(%s) + %c)\n", i, ni, j, nj, x.s, y.s, j);
  put(w, "output r\n");
}

// On n programs at least each rule agrees.
static void each_rule(ein_ctx *ctx, int n) {
  static listed all;
  for (int r = 0; r < rules; r++) {
    int good = 0, tries = 0;
    const char *rule = ein_rewrite_rule(r, NULL, NULL);
    for (; good < n && tries < 20 * n && failures < 5; tries++) {
      const uint64_t seed = rng_state;
      const int before = failures, was_agreed = agreed[r];
      ein_graph *g = random_program(ctx, rule);
      if (g == NULL) continue;
      side was = side_make(g, seed);
      all.n = 0;
      CHECK(ein_rewrites(ctx, g, 2, 0, list_one, &all) == EIN_OK);
      for (int k = 0, places = 0; k < all.n && places < 3; k++) {
        if (strcmp(all.v[k].rule, rule) != 0) continue;
        ein_graph_destroy(check_place(ctx, g, &was, &all.v[k], 1, seed));
        places++;
      }
      good += agreed[r] > was_agreed;
      if (failures > before) printf("%s, from seed %llu\n", rule, (unsigned long long)seed);
      side_free(&was);
      ein_graph_destroy(g);
    }
    if (good < n) printf("%s agrees on %d programs of %d\n", rule, good, tries);
    CHECK(good >= n);
  }
}

// ---- where rules fire, and where they must not --------------------------------------------------

typedef struct one_case {
  const char *rule, *text, *want;  // want: a line of the text after, or part of the reason why not
  int line;                        // of the statement
} one_case;

#define XY "input X[4,3], Y[3,4], v[4], w[3] : f64\n"

static const one_case fires[] = {
    {"inline", XY "T[i,j] = exp(X[i,j])\nS[i] = sum[j](T[i,j]*w[j])\noutput S\n",
     "sum[j=3](exp(X[i,j])*w[j])", 3},
    {"inline", XY "T[i] = v[i]*2\nT[i+4] = v[i]\nS[i=4] = T[i+4]+1\noutput S\n", "= v[i]+1", 4},
    {"inline", XY "T[i] : f32 = v[i]\nS[i] = T[i]*v[i]\noutput S\n", "= cast_f32(v[i])*v[i]", 3},
    {"inline", XY "T[i=4] = 2\nS[i] = T[i]*v[i]\noutput S\n", "*v[i]", 3},
    {"recompute", XY "T[i] = exp(v[i])\nS[i] = T[i]+1\nU[i] = T[i]-1\noutput S, U\n",
     "= exp(v[i])+1", 3},
    {"outline", XY "S[i,j] = exp(v[i])*X[i,j]\noutput S\n", "S_1[i=4] : f64 = exp(v[i])", 2},
    {"unfold", XY "S[i] = sum[j](X[i,j]*w[j])\noutput S\n", "= X[i,j]*w[j]", 2},
    {"merge", XY "T[i=2] = v[i]+1\nT[i+2] = v[i+2]+1 for i=2\nS[i] = T[i]*T[i]\noutput S\n",
     "T[i=4] : f64 = v[i]+1", 3},
    {"shard", XY "S[i] = v[i]*i\noutput S\n", "S[i+2] : f64 = v[i+2]*(i+2) for i=2", 2},
    {"shard", XY "T[i=1] = v[i]\nT[i+1] = w[i]\nS[i] = T[i]+1\noutput S\n", "S[i=1]", 4},
    {"join", XY "T[i,k] = sum[j](X[i,j]*Y[j,k])\nS[i] = sum[k](T[i,k]*v[k])\noutput S\n",
     "sum[k=4,j=3](X[i,j]*Y[j,k]*v[k])", 3},
    {"join", XY "T[i] = max[j](X[i,j])\nS = max[i](T[i])\noutput S\n", "max[i=4,j=3](X[i,j])", 3},
    {"split", XY "S[i] = sum[j,k](X[i,j]*Y[j,k]*v[k])\noutput S\n", "sum[", 2},
    {"hoist", XY "S[i] = sum[j](X[i,j]*v[i])\noutput S\n", "= S_1[i]*v[i]", 2},
    {"factor", XY "S[i,j] = X[i,j]*v[i]+w[j]*v[i]\noutput S\n", "= v[i]*(X[i,j]+w[j])", 2},
    {"reuse", XY "T[i] = exp(v[i])\nU[k] = exp(v[k])\nS[i] = T[i]*U[i]\noutput S\n",
     "= T[i]*T[i]", 3},
    {"constants", XY "S[i] = where(i<4, v[i], 0)\noutput S\n", "= v[i]", 2},
    {"identity", XY "S[i] = v[i]*1/4\noutput S\n", "= v[i]*0.25", 2},
    {"relax", XY "S[i] = v[i]-v[i]+w[0]/3\noutput S\n", "w[0]*0.33333333333333331", 2},
    {"prune", XY "T[i] = exp(v[i])\nS[i] = v[i]+1\noutput S\n", "= v[i]+1", 2},
    {"prune", "input n[4] : i32\nT[i] = n[i]\nS[i] = n[i]*2.0\noutput S\n", "= n[i]*2.0", 2},
    {"constants", XY "S[i] = where(0.5, v[i], 0)\noutput S\n", "= v[i]", 2},
    {"recompute", "input z[2] : c64\nparam p = 1.5\nT = sqrt(p-255)\nU = T+1\nS[k] = z[k]-T\n"
     "output S, U\n", "cast_f64(p)", 5}};

static const one_case refused[] = {
    {"inline", XY "T[i] = sum[j](X[i,j])\nS[i] = T[i]+1\noutput S\n", "is a fold", 3},
    {"inline", XY "S[i] = v[i]+1\noutput S\n", "reads an input", 2},
    {"inline", XY "T[i] = exp(v[i])\nS[i] = T[i]+1\noutput S, T\n", "recompute it", 3},
    {"inline", XY "T[i] = v[i]*2\nT[i+4] = v[i]\nS[i=4] = T[i+2]+1\noutput S\n",
     "not all that is read", 4},
    {"inline", XY "T[2*i] = v[i]*2\nT[2*i+1] = v[i]\nS[i=7] = T[i]+1\noutput S\n",
     "not all that is read", 4},
    {"recompute", XY "T[i] = exp(v[i])\nS[i] = T[i]+1\noutput S\n", "inline it", 3},
    {"outline", XY "S[i] = exp(v[i])\noutput S\n", "nothing in it", 2},
    {"unfold", XY "S[i] = sum[j](X[i,j])\noutput S\n", "stored already", 2},
    {"unfold", "input h[4] : f16\nS = sum[i](h[i]*h[i])\noutput S\n", "no tensor keeps", 2},
    {"merge", XY "T[i=2] = v[i]+1\nT[i+2] = v[i+2]+2 for i=2\nS[i] = T[i]\noutput S\n",
     "goes on where", 3},
    {"shard", XY "S = sum[i](v[i])\noutput S\n", "of that kind", 2},
    {"join", XY "T[i,k] = sum[j](X[i,j]*Y[j,k])\nS[i] = max[k](T[i,k]*v[k])\noutput S\n",
     "not of one kind", 3},
    {"join", XY "T[i,k] = sum[j](X[i,j]*Y[j,k])\nS[i] = sum[k](exp(T[i,k]))\noutput S\n",
     "not one factor", 3},
    {"join", XY "T[i] : f32 = sum[j](X[i,j])\nS = sum[i](T[i])\noutput S\n", "rounded", 3},
    {"split", XY "S[i] = sum[j](X[i,j]*w[j])\noutput S\n", "three factors", 2},
    {"split", XY "S[i] = sum[j](X[i,j]*w[j]+w[j]*w[j])\noutput S\n", "three factors", 2},
    {"hoist", XY "S[i] = sum[j](X[i,j]*w[j])\noutput S\n", "depend on what is summed", 2},
    {"hoist", XY "S[i] = max[j](X[i,j]*v[i])\noutput S\n", "no sum", 2},
    {"factor", XY "S[i,j] = X[i,j]*v[i]+w[j]*w[j]\noutput S\n", "no sum in it", 2},
    {"reuse", XY "T[i] = exp(v[i])\nU[k] = tanh(v[k])\nS[i] = T[i]*U[i]\noutput S\n",
     "no statement before", 3},
    {"reuse", XY "T[i,k] = X[i,0]*v[k]\nU[i,k] = X[k,0]*v[i]\nS[i] = T[i,1]*U[i,2]\noutput S\n",
     "no statement before", 3},
    {"constants", XY "S[i] = where(i<3, v[i], 0)\noutput S\n", "constant", 2},
    {"identity", XY "S[i] = v[i]+0\noutput S\n", "keeps rounding", 2},
    {"identity", XY "S[i] = v[i]/3\noutput S\n", "keeps rounding", 2},
    {"relax", XY "S[i] = v[i]-w[0]\noutput S\n", "no identity of real", 2},
    {"prune", XY "T[i] = exp(v[i])\nS[i] = T[i]+1\noutput S\n", "observed", 2}};

// The graph of a case, and the number of its statement (of prune: of the tensor).
static ein_graph *case_graph(ein_ctx *ctx, const one_case *c, int64_t *stmt) {
  ein_program_desc d;
  ein_graph *g = NULL;
  memset(&d, 0, sizeof d);
  d.text = c->text;
  CHECK(ein_graph_parse(ctx, &d, &g) == EIN_OK);
  *stmt = -1;
  const int dead = strcmp(c->rule, "prune") == 0;
  for (int64_t i = 0; g != NULL && i < (dead ? g->ntensor : g->nstmt); i++)
    if ((dead ? g->tensor[i].line : g->stmt[i].line) == c->line) *stmt = i;
  for (int64_t i = 0; dead && *stmt < 0 && i < g->nstmt; i++)
    if (g->stmt[i].line == c->line) *stmt = g->stmt[i].out;
  return g;
}

static void directed(ein_ctx *ctx) {
  for (size_t k = 0; k < sizeof fires / sizeof *fires; k++) {
    int64_t i;
    ein_graph *g = case_graph(ctx, &fires[k], &i), *made = NULL;
    const ein_status st = ein_rewrite_apply(ctx, g, fires[k].rule, i, -1, &made);
    CHECK(st == EIN_OK);
    if (st != EIN_OK) printf("%s: %s\n", fires[k].text, ein_ctx_message(ctx));
    char *text = text_of(made);
    CHECK(strstr(text, fires[k].want) != NULL);
    if (strstr(text, fires[k].want) == NULL) printf("no '%s' in\n%s", fires[k].want, text);
    free(text);
    ein_graph *read = from_text(ctx, made);
    side a = side_make(g, 7), b = side_make(read, 7);
    CHECK(sides_agree(&a, &b, 0));
    side_free(&a), side_free(&b);
    ein_graph_destroy(g), ein_graph_destroy(made), ein_graph_destroy(read);
  }
  for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
    int64_t i;
    ein_graph *g = case_graph(ctx, &refused[k], &i), *made = NULL;
    CHECK(ein_rewrite_apply(ctx, g, refused[k].rule, i, -1, &made) == EIN_ERR_UNSUPPORTED);
    CHECK(made == NULL && strstr(ein_ctx_message(ctx), refused[k].want) != NULL);
    if (strstr(ein_ctx_message(ctx), refused[k].want) == NULL)
      printf("%s\n%s: %s\n", refused[k].text, refused[k].rule, ein_ctx_message(ctx));
    ein_graph_destroy(g), ein_graph_destroy(made);
  }
}

// Every allocation of a list and of each place fails in turn; nothing is lost.
static void failing(void) {
  static listed all;
  for (size_t k = 0; k < sizeof fires / sizeof *fires; k++) {
    ein_status st = EIN_ERR_NO_MEMORY;
    for (int64_t n = 0; st != EIN_OK && n < 4000; n += 1 + n / 40) {
      counter c;
      int64_t i;
      memset(&c, 0, sizeof c);
      c.fail_at = -1;
      ein_ctx *ctx = test_ctx(1, &c);
      ein_graph *g = case_graph(ctx, &fires[k], &i), *made = NULL;
      c.fail_at = c.calls + n;
      all.n = 0;
      st = ein_rewrites(ctx, g, 2, 1, list_one, &all);
      if (st == EIN_OK) st = ein_rewrite_apply(ctx, g, fires[k].rule, i, -1, &made);
      CHECK(st == EIN_OK || st == EIN_ERR_NO_MEMORY);
      if (st != EIN_OK && st != EIN_ERR_NO_MEMORY)
        printf("%s, allocation %lld: %s\n", fires[k].rule, (long long)n, ein_ctx_message(ctx));
      ein_graph_destroy(g), ein_graph_destroy(made);
      ein_ctx_destroy(ctx);
      CHECK(c.live == 0);
    }
    CHECK(st == EIN_OK);
  }
}

int main(int argc, char **argv) {
  const int n = argc > 1 ? atoi(argv[1]) : FEW(1000);
  int made = 0;
  rng_state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  ein_ctx *ctx = monoid_ctx();
  while (ein_rewrite_rule(rules, NULL, NULL) != NULL) rules++;
  directed(ctx);
  failing();
  for (int tries = 0; made < n && tries < 20 * n && failures < 5; tries++) {
    const uint64_t seed = rng_state;
    ein_graph *g = tries % 2 ? random_graph(ctx, (int)draw(1, 6)) : random_program(ctx, NULL);
    if (g == NULL) continue;
    made++;
    const int before = failures;
    check_graph(ctx, g, seed);
    if (failures > before) printf("from seed %llu\n", (unsigned long long)seed);
    ein_graph_destroy(g);
  }
  CHECK(made == n);
  each_rule(ctx, n);
  for (int k = 0; k < rules; k++)
    printf("%s%s %d (%d, %d)", k > 0 ? ", " : "", ein_rewrite_rule(k, NULL, NULL), fired[k],
           agreed[k], proved[k]);
  printf(": in brackets those that agree and those that are proved equal; %d of %d mutants are, "
         "and agree\n", survived, mutants);
  ein_ctx_destroy(ctx);
  if (failures > 0) return printf("%d of %d checks failed\n", failures, checks), 1;
  printf("ok %d checks, %d programs\n", checks, made);
  return 0;
}
