// Programs with known results: parsed, evaluated by the oracle, planned and executed.
//
//   test_program [programs.txt] [case]     default: tests/programs.txt, all cases
//
// The format of the cases is described at the top of programs.txt. Every case is also parsed with
// an allocator that fails from the n-th call on, for n = 0, 1, 2, .. until it succeeds; no byte may
// stay allocated. Prints "ok <n> cases" and exits 0, or the failures and exits 1.
// With -DNO_PLAN planning and execution are left out.
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"

#include "oracle.h"

#define MAX_ITEMS 16
#define MAX_RANK 8
#define MAX_VALUES 256

typedef struct item {  // an "in" or "out" line
  char name[64];
  ein_dtype dtype;
  int rank;
  int64_t shape[MAX_RANK], count, nvalue;
  double tol;
  double re[MAX_VALUES], im[MAX_VALUES];
} item;

typedef struct mistake {  // an "error" line
  char status[32], text[4][128];
  int line, column, ntext;
} mistake;

typedef struct program_case {
  char name[64], text[4096];
  size_t length;
  ein_dtype dtype;
  int nin, nout, nsize, nparam, nerror, nstmt;  // statements; 0: any number
  item in[MAX_ITEMS], out[MAX_ITEMS];
  char size_name[MAX_ITEMS][64], param_name[MAX_ITEMS][64];
  ein_size size[MAX_ITEMS];
  double param[MAX_ITEMS];
  mistake error[MAX_ITEMS];
} program_case;

static int failures = 0;

static void fail(const program_case *c, const char *what, const char *detail) {
  printf("FAIL %s: %s%s%s\n", c->name, what, detail[0] ? ": " : "", detail);
  failures++;
}

// ---- reading programs.txt -----------------------------------------------------------------------

static void bad_line(const char *line) {
  printf("programs.txt: %s\n", line);
  exit(2);
}

static void add_values(item *t, const char *p, const char *line) {
  char *end;
  while (*p != 0) {
    if (*p == ' ') {
      p++;
      continue;
    }
    if (t->nvalue >= MAX_VALUES) bad_line(line);
    int pair = *p == '(';
    t->re[t->nvalue] = strtod(p + pair, &end);
    if (end == p + pair || (pair && *end != ',')) bad_line(line);
    if (pair) {
      p = end + 1;
      t->im[t->nvalue] = strtod(p, &end);
      if (end == p || *end != ')') bad_line(line);
      end++;
    }
    t->nvalue++;
    p = end;
  }
}

// NAME DTYPE SHAPE [TOL] : V ..
static void read_item(item *t, const char *p, const char *line, int with_tol) {
  char dtype[16], shape[64];
  int n = 0;
  if (sscanf(p, "%63s %15s %63s %n", t->name, dtype, shape, &n) != 3) bad_line(line);
  p += n;
  t->dtype = ein_dtype_find(dtype);
  if (t->dtype == EIN_NONE) bad_line(line);
  t->count = 1;
  for (char *s = shape; shape[0] != '-' && *s != 0;) {
    if (t->rank >= MAX_RANK) bad_line(line);
    t->shape[t->rank] = strtoll(s, &s, 10);
    t->count *= t->shape[t->rank++];
    if (*s == 'x') s++;
    else if (*s != 0) bad_line(line);
  }
  if (with_tol) {
    char *end;
    t->tol = strtod(p, &end);
    if (end == p) bad_line(line);
    for (p = end; *p == ' '; p++) {
    }
  }
  if (*p != ':') bad_line(line);
  add_values(t, p + 1, line);
}

static void read_error(mistake *m, const char *p, const char *line) {
  int n = 0;
  if (sscanf(p, "%31s %d:%d %n", m->status, &m->line, &m->column, &n) != 3) bad_line(line);
  for (p += n; *p == '|';) {
    const char *end = strstr(p, " | ");
    p += p[1] == ' ' ? 2 : 1;
    end = strstr(p, " | ");
    size_t k = end == NULL ? strlen(p) : (size_t)(end - p);
    if (m->ntext >= 4 || k >= sizeof m->text[0]) bad_line(line);
    memcpy(m->text[m->ntext++], p, k);
    if (end == NULL) break;
    p = end + 1;
  }
}

static int hex_digit(char c) {
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0;
}

static void add_text(program_case *c, const char *line, int escaped) {
  for (const char *p = line; *p != 0; p++) {
    char byte = *p;
    if (escaped && p[0] == '\\' && (p[1] == 'n' || p[1] == 'r')) {
      byte = p[1] == 'n' ? '\n' : '\r';
      p++;
    } else if (escaped && p[0] == '\\' && p[1] == 'x' && p[2] != 0 && p[3] != 0) {
      byte = (char)(unsigned char)(hex_digit(p[2]) * 16 + hex_digit(p[3]));
      p += 3;
    }
    if (c->length + 2 >= sizeof c->text) bad_line(line);
    c->text[c->length++] = byte;
  }
  c->text[c->length++] = '\n';
}

// Reads the next case; 0 at the end of the file. *name_line keeps the "case" line read ahead.
static int read_case(FILE *f, char *line, size_t size, program_case *c) {
  int in_text = 0, escaped = 0;
  item *last = NULL;
  while (strncmp(line, "case ", 5) != 0) {
    if (fgets(line, (int)size, f) == NULL) return 0;
  }
  memset(c, 0, sizeof *c);
  line[strcspn(line, "\n")] = 0;
  if (strlen(line + 5) >= sizeof c->name) bad_line(line);
  strcpy(c->name, line + 5);
  for (;;) {
    line[0] = 0;
    if (fgets(line, (int)size, f) == NULL) return 1;
    line[strcspn(line, "\n")] = 0;
    if (in_text) {
      in_text = strcmp(line, "end") != 0;
      if (in_text) add_text(c, line, escaped);
      continue;
    }
    if (line[0] == 0 || line[0] == '#') continue;
    if (strncmp(line, "case ", 5) == 0) return 1;
    if (c->nin >= MAX_ITEMS || c->nout >= MAX_ITEMS || c->nsize >= MAX_ITEMS ||
        c->nparam >= MAX_ITEMS || c->nerror >= MAX_ITEMS) {
      bad_line(line);
    }
    if (strncmp(line, "text", 4) == 0) {
      in_text = 1;
      escaped = strcmp(line, "text escaped") == 0;
    } else if (strncmp(line, "dtype ", 6) == 0) {
      c->dtype = ein_dtype_find(line + 6);
    } else if (strncmp(line, "in ", 3) == 0) {
      last = &c->in[c->nin++];
      read_item(last, line + 3, line, 0);
    } else if (strncmp(line, "out ", 4) == 0) {
      last = &c->out[c->nout++];
      read_item(last, line + 4, line, 1);
    } else if (strncmp(line, "  : ", 4) == 0 && last != NULL) {
      add_values(last, line + 4, line);
    } else if (strncmp(line, "statements ", 11) == 0) {
      c->nstmt = atoi(line + 11);
    } else if (strncmp(line, "size ", 5) == 0) {
      long long v;
      if (sscanf(line + 5, "%63s %lld", c->size_name[c->nsize], &v) != 2) bad_line(line);
      c->size[c->nsize].name = c->size_name[c->nsize];
      c->size[c->nsize++].value = v;
    } else if (strncmp(line, "param ", 6) == 0) {
      if (sscanf(line + 6, "%63s %lf", c->param_name[c->nparam], &c->param[c->nparam]) != 2) {
        bad_line(line);
      }
      c->nparam++;
    } else if (strncmp(line, "error ", 6) == 0) {
      read_error(&c->error[c->nerror++], line + 6, line);
    } else {
      bad_line(line);
    }
  }
}

// ---- parsing ------------------------------------------------------------------------------------

static ein_status parse(ein_ctx *ctx, const program_case *c, ein_graph **g) {
  ein_ztensor view[MAX_ITEMS];
  ein_binding bind[MAX_ITEMS];
  ein_program_desc desc;
  memset(&desc, 0, sizeof desc);
  memset(view, 0, sizeof view);
  for (int i = 0; i < c->nin; i++) {
    view[i].dtype = c->in[i].dtype;
    view[i].rank = c->in[i].rank;
    view[i].shape = c->in[i].shape;
    bind[i].name = c->in[i].name;
    bind[i].view = &view[i];
  }
  desc.text = c->text;
  desc.length = c->length;
  desc.nbind = c->nin;
  desc.bind = bind;
  desc.nsize = c->nsize;
  desc.size = c->size;
  desc.dtype = c->dtype;
  *g = NULL;
  return ein_graph_parse(ctx, &desc, g);
}

static void check_errors(const ein_ctx *ctx, const program_case *c, ein_status st) {
  if (st == EIN_OK) {
    fail(c, "it must be an error, but it parses", "");
    return;
  }
  const char *first = c->error[0].status;
  if (strcmp(first, "*") != 0 && strcmp(first, ein_status_name(st)) != 0) {
    fail(c, "the status is", ein_status_name(st));
  }
  for (int i = 0; i < c->nerror; i++) {
    const mistake *m = &c->error[i];
    const ein_error *e = ein_ctx_error(ctx, i);
    if (e == NULL) {
      fail(c, "too few mistakes are reported", ein_ctx_message(ctx));
      return;
    }
    int ok = strcmp(m->status, "*") == 0 || strcmp(m->status, ein_status_name(e->status)) == 0;
    ok = ok && m->line == e->line && m->column == e->column && e->line > 0;
    for (int k = 0; k < m->ntext; k++) {
      ok = ok && (strstr(e->message, m->text[k]) != NULL || strstr(e->hint, m->text[k]) != NULL);
    }
    if (ok) continue;
    fail(c, "another message", ein_ctx_message(ctx));
    printf("  wanted: %s %d:%d", m->status, m->line, m->column);
    for (int k = 0; k < m->ntext; k++) printf(" | %s", m->text[k]);
    printf("; got %s %d:%d\n", ein_status_name(e->status), e->line, e->column);
  }
}

// An allocator that fails from the n-th call on.
typedef struct faulty {
  int64_t calls, limit, live;
} faulty;

static void *faulty_alloc(size_t size, size_t align, void *user) {
  faulty *f = (faulty *)user;
  if (f->limit >= 0 && f->calls++ >= f->limit) return NULL;
  char *raw = (char *)malloc(size + align + sizeof raw);
  if (raw == NULL) return NULL;
  uintptr_t p = ((uintptr_t)raw + sizeof raw + align - 1) / align * align;
  memcpy((void *)(p - sizeof raw), &raw, sizeof raw);
  f->live += (int64_t)size;
  return (void *)p;
}

static void faulty_free(void *ptr, size_t size, void *user) {
  faulty *f = (faulty *)user;
  char *raw;
  if (ptr == NULL) return;
  memcpy(&raw, (char *)ptr - sizeof raw, sizeof raw);
  f->live -= (int64_t)size;
  free(raw);
}

static void check_memory(const program_case *c) {
  for (int64_t limit = 0; limit < 10000; limit++) {
    faulty f = {0, -1, 0};
    ein_ctx_desc desc;
    ein_ctx *ctx;
    ein_graph *g;
    memset(&desc, 0, sizeof desc);
    desc.allocator.alloc_fn = faulty_alloc;
    desc.allocator.free_fn = faulty_free;
    desc.allocator.user = &f;
    if (ein_ctx_create(&desc, &ctx) != EIN_OK) orc_die("no ctx");
    f.limit = limit;
    ein_status st = parse(ctx, c, &g);
    int failed = f.calls > f.limit;
    if (failed && st == EIN_OK) fail(c, "parsed although an allocation failed", "");
    if (failed && st != EIN_OK && c->nerror == 0 && st != EIN_ERR_NO_MEMORY) {
      fail(c, "a failed allocation gives", ein_status_name(st));
    }
    if (st != EIN_OK && g != NULL) fail(c, "a graph in spite of an error", "");
    ein_graph_destroy(g);
    ein_ctx_destroy(ctx);
    if (f.live != 0) fail(c, "memory is lost after a failed allocation", "");
    if (!failed) return;
  }
  fail(c, "allocations without end", "");
}

// ---- values -------------------------------------------------------------------------------------

static const item *find_item(const item *list, int n, const char *name) {
  for (int i = 0; i < n; i++) {
    if (strcmp(list[i].name, name) == 0) return &list[i];
  }
  return NULL;
}

static void store_item(const item *t, ein_dtype dtype, void *buf) {
  for (int64_t k = 0; k < t->count && k < t->nvalue; k++) {
    orc_val v = orc_float(t->re[k], t->im[k]);
    v.i = orc_to_int(t->re[k]);
    orc_put(dtype, buf, k, v);
  }
}

// Compares with an "out" line: |got - want| <= tol * max(1, |want|).
static int check_values(const program_case *c, const char *who, const eini_tensor *x,
                        const void *buf) {
  const item *t = find_item(c->out, c->nout, x->name);
  int same = t != NULL && t->dtype == x->dtype && t->rank == x->rank && t->nvalue == t->count;
  for (int r = 0; same && r < x->rank; r++) same = t->shape[r] == x->shape[r];
  if (!same) {
    fail(c, "no such output is expected, or another dtype or shape", x->name);
    printf("  got %s(", ein_dtype_name(x->dtype));
    for (int r = 0; r < x->rank; r++) printf("%s%lld", r ? "," : "", (long long)x->shape[r]);
    printf(")\n");
    return 0;
  }
  void *want = orc_alloc(t->count, orc_size(t->dtype));
  double *err = (double *)orc_alloc(t->count, sizeof *err);
  store_item(t, t->dtype, want);
  for (int64_t k = 0; k < t->count; k++) {
    orc_val v = orc_load(t->dtype, want, k);
    double m = hypot(v.re, v.im);
    err[k] = t->tol * (m > 1 && m - m == 0 ? m : 1);
  }
  int ok = orc_compare_err(t->dtype, t->count, buf, want, err);
  if (!ok) fail(c, who, x->name);
  free(want);
  free(err);
  return ok;
}

#ifndef NO_PLAN
static void run_plan(ein_ctx *ctx, const program_case *c, const ein_graph *g, void *const *data,
                     double *const *err, const ein_scalar *param) {
  ein_plan *plan = NULL;
  ein_status st = ein_plan_graph(ctx, g, 0, NULL, NULL, &plan);
  if (st != EIN_OK) {
    fail(c, "planning", ein_ctx_message(ctx));
    return;
  }
  const void **in = (const void **)orc_alloc(g->ntensor, sizeof *in);
  void **out = (void **)orc_alloc(g->ntensor, sizeof *out);
  char message[256];
  ein_tensor_info info;
  for (int i = 0; ein_plan_input(plan, i, &info); i++) {
    for (int64_t t = 0; t < g->ntensor; t++) {
      if (strcmp(g->tensor[t].name, info.name) == 0) in[i] = data[t];
    }
  }
  for (int i = 0; ein_plan_output(plan, i, &info); i++) {
    int64_t n = 1;
    for (int r = 0; r < info.rank; r++) n *= info.shape[r];
    out[i] = orc_alloc(n, orc_size(info.dtype));
    memset(out[i], 0x7f, (size_t)n * orc_size(info.dtype));
  }
  ein_run run;
  memset(&run, 0, sizeof run);
  run.in = in;
  run.out = out;
  run.param = param;
  run.error = message;
  run.error_bytes = sizeof message;
  st = ein_plan_execute(plan, &run);
  if (st != EIN_OK) fail(c, "executing", message);
  for (int i = 0; st == EIN_OK && ein_plan_output(plan, i, &info); i++) {
    for (int64_t t = 0; t < g->ntensor; t++) {
      const eini_tensor *x = &g->tensor[t];
      if (strcmp(x->name, info.name) != 0) continue;
      check_values(c, "the executed plan differs in", x, out[i]);
      if (!orc_compare_err(x->dtype, orc_count(x), out[i], data[t], err[t])) {
        fail(c, "plan and oracle differ in", x->name);
      }
    }
  }
  for (int i = 0; i < g->ntensor; i++) free(out[i]);
  free(out);
  free(in);
  ein_plan_destroy(plan);
}
#endif

static void evaluate(ein_ctx *ctx, const program_case *c, const ein_graph *g) {
  int n = (int)g->ntensor, nout = 0;
  void **data = (void **)orc_alloc(n, sizeof *data);
  double **err = (double **)orc_alloc(n, sizeof *err);
  ein_scalar *param = (ein_scalar *)orc_alloc(g->nparam, sizeof *param);
  for (int p = 0; p < g->nparam; p++) {
    for (int k = 0; k < c->nparam; k++) {
      if (strcmp(g->param[p].name, c->param_name[k]) != 0) continue;
      param[p].set = 1;
      param[p].re = c->param[k];
    }
  }
  for (int t = 0; t < n; t++) {
    const eini_tensor *x = &g->tensor[t];
    const item *v = x->role == EIN_ROLE_INPUT ? find_item(c->in, c->nin, x->name) : NULL;
    data[t] = orc_alloc(orc_count(x), orc_size(x->dtype));
    err[t] = (double *)orc_alloc(orc_count(x), sizeof *err[t]);
    if (v != NULL && (v->dtype != x->dtype || v->count != orc_count(x) || v->nvalue != v->count)) {
      fail(c, "the input has another dtype or size than its view", x->name);
      v = NULL;
    }
    if (v != NULL) store_item(v, x->dtype, data[t]);
  }
  orc_eval_err(g, data, err, param);
  for (int t = 0; t < n; t++) {
    if (g->tensor[t].role != EIN_ROLE_OUTPUT) continue;
    nout++;
    check_values(c, "the oracle differs in", &g->tensor[t], data[t]);
  }
  if (nout != c->nout) fail(c, "another number of outputs", "");
#ifndef NO_PLAN
  run_plan(ctx, c, g, data, err, param);
#else
  (void)ctx;
#endif
  for (int t = 0; t < n; t++) {
    free(data[t]);
    free(err[t]);
  }
  free(data);
  free(err);
  free(param);
}

static void run_case(ein_ctx *ctx, const program_case *c) {
  ein_graph *g;
  ein_status st = parse(ctx, c, &g);
  if (c->nerror > 0) check_errors(ctx, c, st);
  else if (st != EIN_OK) fail(c, "it does not parse", ein_ctx_message(ctx));
  else evaluate(ctx, c, g);
  if (st == EIN_OK && c->nstmt > 0 && g->nstmt != c->nstmt) fail(c, "other statements", "");
  ein_graph_destroy(g);
  check_memory(c);
}

#ifndef NO_PLAN
// A plan whose output is its input: done where each element is read where it is written only, or
// refused, or through a copy that was asked for.
static void in_place(ein_ctx *ctx) {
  static const struct { const char *text; int safe; } c[] = {
      {"input X[6] : f64\nY[i] = X[i]*2\n", 1},
      {"input X[6] : f64\nY[i] = X[i] + X[i]\n", 1},
      {"input X[6] : f64\nY[i=5] = X[i+1]*2\n", 0},          // from another element
      {"input X[6] : f64\nY[i=5] = X[i+1] - X[i]\n", 0},
      {"input X[6] : f64\nY[i=6] = X[5-i]*2\n", 0},          // in another order
      {"input X[6] : f64\nY[i=6] = X[0] + X[i]\n", 0},       // one element read by all
      {"input X[6] : f64\nY[i=3] = X[2*i]*2\n", 0},
      {"input X[6] : f64\nY[i] : f32 = X[i]*2\n", 0},        // of another size
      {"input X[6] : f64\nY = sum[i](X[i])\n", 0},
      {"input X[6] : f64\nT[i] = X[i]*2\nY[i] = T[i] + X[i]\noutput T, Y\n", 0}};
  for (size_t k = 0; k < sizeof c / sizeof *c; k++) {
    for (int way = 0; way < 4; way++) {
      const int may = way % 2, shift = way / 2;  // shift: the output begins an element later
      ein_program_desc d;
      ein_graph *g = NULL;
      ein_plan *plan = NULL;
      ein_options o;
      double data[16], want[6], err[6], y[6];
      memset(&d, 0, sizeof d);
      memset(&o, 0, sizeof o);
      d.text = c[k].text;
      o.may_overlap = may;
      if (ein_graph_parse(ctx, &d, &g) != EIN_OK || ein_plan_graph(ctx, g, 0, NULL, &o, &plan)) {
        printf("in place: %s: %s\n", c[k].text, ein_ctx_message(ctx));
        failures++;
        ein_graph_destroy(g);
        continue;
      }
      for (int i = 0; i < 16; i++) data[i] = i * i + 1;
      void *values[3] = {data, want, y};
      double *errs[3] = {NULL, err, NULL};
      orc_eval_err(g, values, errs, NULL);
      int last = (int)g->ntensor - 1;
      if (last == 2) memcpy(want, y, sizeof want);
      const void *in[1] = {data};
      void *out[2] = {data + shift, data + shift};
      double first[6];
      if (last == 2) out[0] = first;
      ein_run run;
      memset(&run, 0, sizeof run);
      run.in = in;
      run.out = out;
      ein_status st = ein_plan_execute(plan, &run);
      const eini_tensor *t = &g->tensor[last];
      int ok = st == (may || (c[k].safe && shift == 0) ? EIN_OK : EIN_ERR_OVERLAP);
      if (st == EIN_OK) ok &= orc_compare(t->dtype, orc_count(t), data + shift, want, 1);
      failures += !ok;
      if (!ok) printf("in place, may_overlap %d, shift %d: %s: %s\n", may, shift, c[k].text,
                      ein_status_name(st));
      ein_plan_destroy(plan);
      ein_graph_destroy(g);
    }
  }
}
#endif

int main(int argc, char **argv) {
  const char *path = argc > 1 ? argv[1] : "tests/programs.txt";
  const char *only = argc > 2 ? argv[2] : NULL;
  FILE *f = fopen(path, "rb");
  char line[4096] = "";
  int cases = 0;
  ein_ctx *ctx;
  if (f == NULL) {
    printf("cannot open %s\n", path);
    return 2;
  }
  if (ein_ctx_create(NULL, &ctx) != EIN_OK) orc_die("no ctx");
  program_case *c = (program_case *)orc_alloc(1, sizeof *c);
  while (read_case(f, line, sizeof line, c)) {
    if (only != NULL && strcmp(only, c->name) != 0) continue;
    run_case(ctx, c);
    cases++;
  }
  fclose(f);
  free(c);
#ifndef NO_PLAN
  if (only == NULL) in_place(ctx);
#endif
  ein_ctx_destroy(ctx);
  if (failures > 0 || cases == 0) {
    printf("%d failures in %d cases\n", failures, cases);
    return 1;
  }
  printf("ok %d cases\n", cases);
  return 0;
}
