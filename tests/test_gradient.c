// Gradients against central finite differences (f64 and c128), values at the kinks, every function
// and fold, random programs, gradients of gradients, every mistake, and every allocation failing.
// Every result is also compared with the brute-force oracle, and the pieces of every tensor are
// proved to fit again.
//
//   test_gradient [programs] [seed]    default: 400 random programs from seed 1
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "oracle.h"
#include "check.h"
#include "util.h"

// ---- running a program --------------------------------------------------------------------------

#define MOST 24

typedef struct machine {  // a planned graph with its inputs and outputs, as arrays of double
  ein_graph *g;
  ein_plan *plan;
  int n, nin, nout, in[MOST], out[MOST];
  int64_t count[64 * MOST];          // doubles of a tensor
  double *data[64 * MOST];
  double **err;
  ein_run run;
  const void *inp[MOST];
  void *outp[MOST];
} machine;

static int is_complex(const eini_tensor *t) { return t->dtype == EIN_C128; }

// The pieces of every tensor are disjoint and fill it.
static void check_pieces(ein_graph *g) {
  eini_arena scratch;
  eini_arena_init(&scratch, NULL);
  for (int t = 0; t < g->ntensor; t++) {
    eini_tensor *x = &g->tensor[t];
    int64_t n = 0, *piece = EINI_NEW(&scratch, int64_t, x->nstmt + 1), *shape = x->shape;
    eini_cover c;
    if (x->nstmt == 0 || x->partial) continue;
    for (int64_t i = 0; i < g->nstmt; i++)
      if (g->stmt[i].out == t) piece[n++] = i;
    CHECK(n == x->nstmt);
    memset(&c, 0, sizeof c);
    ein_status st = eini_cover_prove(g, t, piece, n, &scratch, &c);
    int same = st == EIN_OK;
    for (int r = 0; same && r < x->rank; r++) same = x->shape[r] == shape[r];
    if (!same) printf("pieces of %s: %s\n", x->name, c.what == NULL ? "shape" : c.what);
    CHECK(same);
    x->shape = shape;
  }
  eini_arena_free(&scratch);
}

static void machine_free(machine *m) {
  for (int t = 0; t < m->n; t++) free(m->data[t]);
  ein_plan_destroy(m->plan);
  ein_graph_destroy(m->g);
}

// Parses and plans; 0 after a mistake, which is a failure.
static int machine_of(ein_ctx *ctx, const char *text, machine *m) {
  ein_program_desc d;
  memset(&d, 0, sizeof d);
  memset(m, 0, sizeof *m);
  d.text = text;
  ein_status st = ein_graph_parse(ctx, &d, &m->g);
  if (st == EIN_OK) check_pieces(m->g);
  if (st == EIN_OK) st = ein_plan_graph(ctx, m->g, 0, NULL, NULL, &m->plan);
  if (st != EIN_OK) printf("%s\n%s\n", text, ein_ctx_message(ctx));
  CHECK(st == EIN_OK);
  if (st != EIN_OK) {
    machine_free(m);
    return 0;
  }
  m->n = (int)m->g->ntensor;
  if (m->n > 64 * MOST) orc_die("too many tensors");
  for (int t = 0; t < m->n; t++) {
    const eini_tensor *x = &m->g->tensor[t];
    m->count[t] = x->nstmt == 0 && x->role != EIN_ROLE_INPUT ? 0 : orc_count(x);
    if (is_complex(x)) m->count[t] *= 2;
    m->data[t] = (double *)orc_alloc(m->count[t], sizeof(double));
    if (x->role == EIN_ROLE_INPUT) m->in[m->nin++] = t;
    if (x->role == EIN_ROLE_OUTPUT && x->nstmt > 0) m->out[m->nout++] = t;
  }
  for (int i = 0; i < m->nin; i++) m->inp[i] = m->data[m->in[i]];
  for (int i = 0; i < m->nout; i++) m->outp[i] = m->data[m->out[i]];
  m->run.in = m->inp;
  m->run.out = m->outp;
  return 1;
}

static int tensor_named(const machine *m, const char *name) {
  for (int t = 0; t < m->n; t++)
    if (strcmp(m->g->tensor[t].name, name) == 0 && m->count[t] > 0) return t;
  return -1;
}

static void execute(machine *m) { CHECK(ein_plan_execute(m->plan, &m->run) == EIN_OK); }

// The outputs just computed against the oracle's.
static void compare_with_oracle(machine *m, const char *text) {
  void *data[64 * MOST];
  double *err[64 * MOST];
  for (int t = 0; t < m->n; t++) {
    data[t] = orc_alloc(m->count[t], sizeof(double));
    err[t] = (double *)orc_alloc(m->count[t], sizeof(double));
    if (m->g->tensor[t].role == EIN_ROLE_INPUT)
      memcpy(data[t], m->data[t], (size_t)m->count[t] * sizeof(double));
  }
  orc_eval_err(m->g, data, err, NULL);
  for (int k = 0; k < m->nout; k++) {
    int t = m->out[k];
    const eini_tensor *x = &m->g->tensor[t];
    int ok = orc_compare_err(x->dtype, orc_count(x), m->data[t], data[t], err[t]);
    if (!ok) printf("oracle: %s of\n%s\n", x->name, text);
    CHECK(ok);
  }
  for (int t = 0; t < m->n; t++) {
    free(data[t]);
    free(err[t]);
  }
}

// Fills the inputs with numbers between lo and hi.
static void fill(machine *m, double lo, double hi) {
  for (int i = 0; i < m->nin; i++)
    for (int64_t k = 0; k < m->count[m->in[i]]; k++)
      m->data[m->in[i]][k] = lo + (hi - lo) * (double)draw(0, 1 << 20) / (1 << 20);
}

// The gradient dX of L by input X for every input that has one.
static int check_differences(machine *m, const char *text) {
  int loss = tensor_named(m, "L"), bad = 0, compared = 0;
  double h = 1e-5, *saved[MOST];
  if (loss < 0) orc_die("no L");
  execute(m);
  compare_with_oracle(m, text);
  for (int k = 0; k < m->nout; k++) {
    int64_t n = m->count[m->out[k]];
    saved[k] = (double *)orc_alloc(n, sizeof(double));
    memcpy(saved[k], m->data[m->out[k]], (size_t)n * sizeof(double));
  }
  for (int i = 0; i < m->nin; i++) {
    char name[64];
    int t = m->in[i], at = -1;
    double most = 1;
    snprintf(name, sizeof name, "d%.60s", m->g->tensor[t].name);
    for (int k = 0; k < m->nout; k++)
      if (m->out[k] == tensor_named(m, name)) at = k;
    for (int64_t k = 0; at >= 0 && k < m->count[t]; k++) most = fmax(most, fabs(saved[at][k]));
    for (int64_t k = 0; at >= 0 && k < m->count[t] && bad == 0; k++) {
      double x = m->data[t][k], up = 0, slope[2], got = saved[at][k];
      for (int wide = 0; wide < 2; wide++) {
        m->data[t][k] = x + h * (wide + 1);
        execute(m);
        up = m->data[loss][0];
        m->data[t][k] = x - h * (wide + 1);
        execute(m);
        slope[wide] = (up - m->data[loss][0]) / (2 * h * (wide + 1));
      }
      m->data[t][k] = x;
      double want = (4 * slope[0] - slope[1]) / 3;
      compared++;
      bad = !(fabs(got - want) <= 1e-6 * most + 1e-9 * fabs(up) + fabs(slope[1] - slope[0]));
      if (up - up != 0 || most > 1e6) bad = 0;  // L is too large, or too steep for differences
      if (bad) printf("%s\n  %s[%lld] = %.12g, not %.12g\n", text, name, (long long)k, got, want);
    }
  }
  for (int k = 0; k < m->nout; k++) free(saved[k]);
  CHECK(!bad);
  CHECK(compared > 0);
  return !bad;
}

static void differences(ein_ctx *ctx, const char *text, double lo, double hi) {
  machine m;
  if (!machine_of(ctx, text, &m)) return;
  fill(&m, lo, hi);
  check_differences(&m, text);
  machine_free(&m);
}

// ---- functions ----------------------------------------------------------------------------------

static void test_functions(ein_ctx *ctx) {
  static const struct {
    const char *e;
    double lo, hi;
  } real[] = {
      {"x[i]+y[i]-3*x[i]", -1, 1}, {"-x[i]*y[i]*x[i]", -1, 1}, {"x[i]/y[i]/(1+x[i])", 0.5, 1},
      {"exp(x[i])*y[i]", -1, 1}, {"log(x[i])*y[i]", 0.3, 2}, {"sqrt(x[i]*y[i])", 0.3, 2},
      {"rsqrt(x[i]+y[i])", 0.3, 2}, {"abs(x[i])*y[i]", 0.1, 2}, {"abs(-x[i])^2", 0.1, 2},
      {"sin(x[i])*cos(y[i])", -2, 2}, {"tanh(x[i])", -2, 2}, {"erf(x[i]*y[i])", -2, 2},
      {"tan(x[i])*y[i]", -1, 1}, {"expm1(x[i]*y[i])", -1, 1}, {"log1p(x[i])*y[i]", -0.5, 2},
      {"atan2(x[i],y[i]-3)", 0.1, 2}, {"atan2(2*y[i],x[i])", 0.1, 2}, {"sign(x[i])*y[i]", 0.1, 1},
      {"sigmoid(x[i])", -4, 4}, {"relu(x[i])+relu(-x[i])*y[i]", 0.1, 2}, {"silu(x[i])", -4, 4},
      {"gelu(x[i])*y[i]", -3, 3}, {"floor(x[i])*y[i]", 0.1, 0.9}, {"ceil(x[i])*y[i]", 0.1, 0.9},
      {"round(x[i])*y[i]", 0.6, 0.9}, {"mod(5*x[i],y[i]+3)", 0.9, 1.1},
      {"div(5*x[i],y[i])*x[i]", 1.05, 1.1}, {"max(x[i],y[i])", -1, 1},
      {"min(x[i],y[i],x[i]*y[i])", -1, 1}, {"max(max(x[i],y[i]),min(x[i],0.2))", -1, 1},
      {"where(x[i]<y[i], x[i]^2, sin(y[i]))", -1, 1}, {"x[i]^y[i]", 0.3, 2}, {"x[i]^2.5", 0.3, 2},
      {"x[i]^7*y[i]^3", -1, 1}, {"x[i]^-2", 0.5, 2}, {"2^x[i]", -1, 1}, {"x[i]^0", -1, 1},
      {"pow(x[i],i)", 0.5, 2}, {"x[i]^0.0", 0.5, 1}, {"cast_f64(x[i])*(x[i]>y[i])", -1, 1},
      {"conj(x[i])*real(y[i])+imag(x[i])", -1, 1}, {"i*x[i]+(i==1)*y[i]", -1, 1},
      {"real(complex(x[i],y[i])*complex(y[i],3))", -1, 1},
      {"abs(complex(x[i],y[i]))+imag(exp(complex(x[i],y[i])))", -1, 1},
      {"where(x[i]<0, log(x[i]), sqrt(x[i]))*y[i]", 0.1, 1}, {"exp(x[i])", -1, 1},
      {"x[i]*(x[i]>0 and not y[i]>0.3 or y[i]!=x[i])", -1, 1}};
  static const char *const complex_[] = {
      "x[i]*y[i]-conj(x[i])*y[i]", "x[i]/y[i]", "exp(x[i])*y[i]", "log(x[i])", "sqrt(x[i])*y[i]",
      "rsqrt(y[i])", "sin(x[i])", "cos(x[i]*y[i])", "tan(y[i])", "expm1(x[i]*y[i])", "log1p(x[i])",
      "sign(x[i])*y[i]", "tanh(x[i])", "x[i]^y[i]", "x[i]^3", "x[i]^1.5",
      "abs(x[i])*y[i]", "real(x[i])*y[i]+imag(x[i])", "complex(imag(x[i]),real(y[i]))^2", "-x[i]^2",
      "where(real(x[i])>0.5, x[i], y[i]^2)", "exp(y[i])", "2^x[i]", "abs(x[i])"};
  char text[512];
  for (size_t k = 0; k < sizeof real / sizeof *real; k++) {
    for (int two = 0; two < 2; two++) {  // inside one statement, and stored
      const char *loss = two ? "T[i] = %s\nL = sum[i](T[i]*(i+1))\n" : "L = sum[i]((%s)*(i+1))\n";
      int n = snprintf(text, sizeof text, "input x[4], y[4] : f64\n");
      n += snprintf(text + n, sizeof text - (size_t)n, loss, real[k].e);
      snprintf(text + n, sizeof text - (size_t)n,
               "grad L wrt x, y as dx, dy\noutput L, dx, dy\n");
      differences(ctx, text, real[k].lo, real[k].hi);
    }
  }
  for (size_t k = 0; k < sizeof complex_ / sizeof *complex_; k++) {
    snprintf(text, sizeof text, "input x[4], y[4] : c128\nT[i] = %s\nL = sum[i](real(T[i])*(i+1) + "
             "sin(imag(T[i])))\ngrad L wrt x, y as dx, dy\noutput L, dx, dy\n", complex_[k]);
    differences(ctx, text, 0.3, 1.2);
  }
}

// ---- folds, accesses, programs ------------------------------------------------------------------

static const char *const programs[] = {
    // folds
    "input A[3,4]\nS[i] = sum[j](A[i,j]^2)\nL = sum(S[i]*(i+1))^2",
    "input A[3,4]\nP[i] = prod[j](A[i,j])\nL = sum(P[i]^2)",
    "input A[2,3,5]\nP[i] = prod[j,k](A[i,j,k]*1.5)\nL = sum(P[i]^2) + prod[j](A[1,j,2])",
    "input A[7]\nL = prod[i](A[i]+A[6-i]) + prod[j=1](A[j])",
    "input A[3,4]\nM[i] = max[j](A[i,j])\nN[j] = min[i](A[i,j]^2)\nL = sum(M[i]^2) - sum(N[j]^2)",
    "input A[3,4]\nM = max[i,j](A[i,j]*A[2-i,j])\nL = M^2",
    "input A[3,4]\nE[i] = logsumexp[j](A[i,j])\nL = sum(E[i]^2) + logsumexp[k,m](2*A[k,m])",
    "input A[3,4]\nM[i] = mean[j](A[i,j]^2)\nL = sum(M[i]^2) + mean[k,m](A[k,m])^2",
    "input A[3,4]\nV[i] = var[j](A[i,j]*2)\nL = sum(V[i]^2) + var[k,m](A[k,m]^2)",
    "input A[3,4]\nN[i] = norm[j](A[i,j])\nL = sum(N[i]^3) + norm[k,m](A[k,m])",
    "input A[3,4]\nP[i,j] = softmax[j](A[i,j])\nL = sum(P[i,j]^2)",
    // the program's own max may be the one that softmax subtracts, whichever comes first
    "input A[3,4]\nP[i,j] = softmax[j](A[i,j])*max[j](A[i,j])\nL = sum(P[i,j]^2)",
    "input A[3,4]\nP[i,j] = max[j](A[i,j])*logsoftmax[j](A[i,j])\nL = sum(P[i,j]^2)",
    "input A[3,4]\nP[i,j] = logsoftmax[i](A[i,j])\nL = sum(P[i,j]*(i+1))",
    "input A[3,4], g[4], b[4]\nP[i,j] = layernorm[j](A[i,j], g[j], b[j])\nL = sum(P[i,j]^3)",
    "input A[3,4], g[4]\nP[i,j] = rmsnorm[j](A[i,j], g[j])\nL = sum(P[i,j]^3)",
    "input A[3,4] : c128\nP[i] = prod[j](A[i,j])\nL = real(mean(P[i])) + norm[k,m](A[k,m])",
    "input A[3,4] : c128\nM[i] = mean[j](A[i,j]^2)\nL = sum(abs(M[i]))",
    // contractions
    "input A[3,4], B[4,5]\nC[i,j] = A[i,k]*B[k,j]\nL = sum(C[i,j]^2)",
    "input A[3,4] : c128\ninput B[4,5] : f64\nC[i,j] = A[i,k]*B[k,j]\nL = sum(abs(C[i,j])^2)",
    "input A[3,4], B[4,5], C[5,3]\nL = A[i,j]*B[j,k]*C[k,i]",
    "input A[3,4], x[3]\nY[i] = sum[j](A[i,j])*x[i] + x[i]\nL = sum(Y[i]^2)",
    "input A[3,4], B[4,5]\nC[i,j] = sum[k](exp(A[i,k])*sigmoid(B[k,j])/(2+i))\nL = sum(C[i,j]^2)",
    "input x[4], s[]\nL = sum[i](x[i]*s)^2 + s[]",
    "input A[4,4]\nL = A[i,j]*A[j,i] + sum[k](A[k,k])^2",
    "input A[3,4], B[5]\nL = sum[i,j,k,m=3](A[i,j] + B[k]*2)^2",
    // affine accesses
    "input X[10], K[3]\nY[h] = X[2*h+r]*K[r]\nL = sum(Y[h]^2)",
    "input X[10], K[4]\nY[h] = sum[r](exp(X[3*h+2*r])*K[r])\nL = sum(Y[h]^2)",
    "input X[2,3,9,8], K[4,3,3,2]\nY[n,o,h,w] = X[n,c,2*h+r,3*w+s]*K[o,c,r,s]\n"
    "L = sum(Y[n,o,h,w]^2)",
    "input X[9]\nM[h] = max[r=3](X[2*h+r])\nN[h] = mean[r=2](X[3*h+r]^2)\nL = sum(M[h]*N[0])",
    "input A[5,5], x[5]\nL = sum[i](A[i,i]*x[i]*A[2,i])",
    "input A[3,3,3]\nL = sum[i](A[i,i,i]^2) + sum[i,j](exp(A[j,i,j]))",
    "input A[6,9]\nL = sum[i=3,j=4](A[i+j,2*i+j]*(i+1))^2",
    "input A[9,7]\nL = sum[i=3,j=4](exp(A[i+j,i-j+3])*(i+1))^2",
    "input A[4,9], B[5]\nL = sum[i,j](A[i,i+j]*B[j])^2",
    "input A[40]\nL = sum[i=3,j=4,k=3](exp(A[6*i+3*j+2*k])*(i+1))^2",
    "input A[47]\nL = sum[i=2,j=2,k=3](A[6*i+10*j-15*k+30]^2)",
    "input A[40]\nL = sum[i=3,j=4](A[10*i+2*j+1]^2)",
    "input A[40]\nL = sum[i=3,j=4](A[39-10*i-2*j]^2)",
    "input A[30,7]\nL = sum[i=3,j=4](A[10*i+2*j+1,2*j]^2)",
    "input A[30], B[8]\nL = sum[i=4](sum[j=3](A[4*i-2*j+9]*B[2*i+1])^2)",
    "input A[1,1], B[3]\nL = sum[i=1,j](A[i,i]*B[j+i]^2)",
    // pieces and edge rules
    "input a[4], b[3]\nC[2*i] = a[i]*2\nC[2*i+1] = b[i]^2\nL = sum(C[i]*C[6-i])",
    "input a[2,3], b[2,2]\nC[i,j] = a[i,j]\nC[i,j+3] = exp(b[i,j])\n"
    "L = sum[i,j](C[i,j]*C[1-i,4-j])",
    "input X[6]\nD[i=6] = X[i+1 | 0] - X[i]\nL = sum(D[i]^2)",
    "input X[6], K[3]\nD[i=6] = X[i+r-1 | 0]*K[r]\nL = sum(D[i]^2)",
    "input X[6]\nD[i=6] = X[i-2 | wrap]*X[i+3 | reflect] - exp(X[2*i-3 | clamp])\nL = sum(D[i]^2)",
    "input X[4,5]\nD[i=4,j=5] = sum[r=4](X[i-1,j+r-2 | reflect]*(r+1)) + sum[s=2](X[i+s,j | 2])\n"
    "L = sum(D[i,j]^2)",
    // several consumers, several gradients of one tensor
    "input A[3,4]\nB[i,j] = A[i,j] + mean[k](A[i,k])\nM = sum(B[i,j]^2)\nL = M*exp(-M/30)",
    "input x[3]\ny[i] = sin(x[i])\nz[i] = y[i]*x[i]\nL = sum[i](y[i]*z[i]*x[2-i])",
    // extents 0 and 1
    "input A[3,0], x[2]\nS[i] = sum[j](A[i,j]) + 1\nL = sum(S[i])*x[0]^2 + x[1]*0",
    "input A[1,3], x[1]\nL = prod[i,j](A[i,j]*x[i])"};

static void add_gradients(const char *text, char *buf, size_t size) {
  size_t n = (size_t)snprintf(buf, size, "%s\ngrad L wrt ", text);
  char names[8][8];
  int k = 0;
  for (const char *p = strstr(text, "input "); p != NULL; p = strstr(p + 1, "input ")) {
    for (const char *q = p + 6; *q != '\n' && *q != ':'; q++) {
      if (q[1] != '[' || (q[-1] != ' ')) continue;
      names[k][0] = *q;
      names[k++][1] = 0;
    }
  }
  for (int as = 0; as < 3; as++) {
    if (as > 0) n += (size_t)snprintf(buf + n, size - n, as == 1 ? " as " : "\noutput L, ");
    for (int i = 0; i < k; i++)
      n += (size_t)snprintf(buf + n, size - n, "%s%s%s", i ? ", " : "", as ? "d" : "", names[i]);
  }
  if (n >= size) orc_die("a long program");
}

static void test_programs(ein_ctx *ctx) {
  char text[1024];
  for (size_t k = 0; k < sizeof programs / sizeof *programs; k++) {
    add_gradients(programs[k], text, sizeof text);
    differences(ctx, text, 0.2, 1.3);
  }
}

// ---- values at the kinks ------------------------------------------------------------------------

#define INF ((double)INFINITY)
#define NOT ((double)NAN)

static void test_kinks(ein_ctx *ctx) {
  static const struct {
    const char *text;
    double x[3], want[3];
  } rows[] = {
      {"L = sum[i](relu(x[i]))", {0, -1, 2}, {0, 0, 1}},
      {"L = sum[i](abs(x[i]))", {0, -1, 2}, {0, -1, 1}},
      {"L = sum[i](abs(complex(x[i],0)))", {0, -1, 2}, {0, -1, 1}},
      {"L = max[i](x[i])", {2, 2, 1}, {0.5, 0.5, 0}},
      {"L = min[i](x[i]*3)", {1, 1, 1}, {1, 1, 1}},
      {"L = max(x[0], x[1], x[2])", {3, 3, 3}, {1. / 3, 1. / 3, 1. / 3}},
      {"L = max(x[0], max(x[1], x[2]))*2", {3, 1, 3}, {1, 0, 1}},
      {"L = min(x[0], x[1], x[2])", {1, 2, 1}, {0.5, 0, 0.5}},
      {"L = sum[i](max(x[i], 0))", {0, -1, 1}, {0.5, 0, 1}},
      {"M[h=2] = max[r=2](x[h+r])\nL = sum(M[h]*(h+1))", {1, 2, 2}, {0, 2, 1}},
      {"L = max[i](x[i])", {NOT, 1, 2}, {0, 0, 0}},
      {"L = min[i](x[i]*2)", {1, NOT, 2}, {0, 0, 0}},
      {"L = max(x[0], x[1], x[2])", {3, NOT, 3}, {0, 0, 0}},
      {"L = max(x[0], x[1]) + min(x[1], x[2])", {NOT, 1, 2}, {0, 1, 0}},
      {"M[h=2] = max[r=2](x[h+r])\nL = sum(M[h]*(h+1))", {NOT, 1, 4}, {0, 0, 2}},
      {"L = sum[i](where(x[i]>0, sqrt(x[i]), 0))", {0, 1, 4}, {0, 0.5, 0.25}},
      {"L = sum[i](where(x[i]>0, log(x[i]), x[i]))", {0, 1, -1}, {1, 1, 1}},
      {"L = sum[i](where(x[i]!=0, 1/x[i], 7))", {0, 1, -1}, {0, -1, -1}},
      {"L = sum[i](sqrt(x[i]))", {0, 1, 4}, {INF, 0.5, 0.25}},
      {"L = norm[i](x[i])", {0, 0, 0}, {0, 0, 0}},
      {"L = norm[i](x[i])", {3, 0, 4}, {0.6, 0, 0.8}},
      {"L = 2*norm[i](x[i]) + x[0]", {0, 0, 0}, {1, 0, 0}},
      {"F = 2*norm[i](x[i])\ngrad F wrt x as g\nL = g[0] + x[1]", {0, 0, 0}, {0, 1, 0}},
      {"L = sqrt(sum[i](x[i]^2))", {0, 0, 0}, {0, 0, 0}},
      {"L = prod[i](x[i])", {1, 2, 3}, {6, 3, 2}},
      {"L = prod[i](x[i])", {0, 2, 3}, {6, 0, 0}},
      {"L = prod[i](x[i])", {0, 2, 0}, {0, 0, 0}},
      {"L = prod[i](x[i])", {1e-200, 1e-200, 1e100}, {1e-100, 1e-100, 0}},
      {"L = prod[i,j=3](x[i]+j)", {0, 0, 1}, {0, 0, 0}},
      {"L = x[0]*x[1]*x[2]", {0, 2, 3}, {6, 0, 0}},
      {"L = x[0]^x[1] + x[2]^2.0", {0, 2, 0}, {0, 0, 0}},
      {"L = x[0]^x[1] + x[2]^0.0", {0, 1, 0}, {1, 0, 0}},
      {"L = x[0]^0 + x[1]^1 + x[2]^3", {0, 0, 0}, {0, 1, 0}},
      {"L = pow(x[0], x[1]) + x[2]^-1", {2, 0, 1}, {0, 0.69314718055994530942, -1}},
      {"L = sum[i](floor(x[i]) + ceil(x[i]) + round(x[i]))", {0, 0.5, 1}, {0, 0, 0}},
      {"L = sum[i](div(x[i], 2) + mod(x[i], 2))", {0, 2, 4}, {1, 1, 1}},
      {"L = logsumexp[i](x[i])", {-INF, 0, 0}, {0, 0.5, 0.5}},
      {"L = logsumexp[i](x[i])", {-INF, -INF, -INF}, {0, 0, 0}},
      {"P[i] = softmax[i](x[i])\nL = P[1]", {-INF, 0, 0}, {0, 0.25, -0.25}},
      {"L = sum[i](x[i]*(x[i]>0))", {0, -1, 2}, {0, 0, 1}},
      {"m[i] = x[i] > 0\nL = sum[i](where(m[i], 2, 3)*x[i])", {0, -1, 2}, {3, 3, 2}},
      {"L = sum[i](sigmoid(x[i]) + tanh(x[i]) + exp(x[i]))", {-INF, -INF, -INF}, {0, 0, 0}},
      {"L = sum[i](silu(x[i]) + gelu(x[i]))", {-1000, 1000, 0}, {0, 2, 1}},
      {"L = 5.0", {1, 2, 3}, {0, 0, 0}},
      {"y[i] = x[i]\nL = var[i](y[i]) + var[j=1](x[j])", {1, 1, 4}, {-2. / 3, -2. / 3, 4. / 3}},
      {"L = x[1]", {1, 2, 3}, {0, 1, 0}}};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    char text[256];
    machine m;
    snprintf(text, sizeof text, "input x[3]\n%s\ngrad L wrt x as dx\noutput dx", rows[k].text);
    if (!machine_of(ctx, text, &m)) continue;
    memcpy(m.data[m.in[0]], rows[k].x, sizeof rows[k].x);
    execute(&m);
    for (int i = 0; i < 3; i++) {
      double got = m.data[m.out[0]][i], want = rows[k].want[i];
      int ok = got == want || fabs(got - want) <= 1e-14 * fabs(want);
      if (!ok) printf("%s: dx[%d] = %.17g, not %.17g\n", rows[k].text, i, got, want);
      CHECK(ok);
    }
    machine_free(&m);
  }
}

// ---- random programs ----------------------------------------------------------------------------

typedef struct writer {  // a program being made up: tensors T0, T1, .. with their shapes
  char text[8192];
  size_t n;
  int ntensor, rank[16], complex;
  int64_t shape[16][3];
  int pieces;              // i0 has no extent of its own
  int nindex;              // i0, i1, .. of the current statement
  int64_t extent[5];
} writer;

static void say(writer *w, const char *format, ...) {
  va_list args;
  va_start(args, format);
  w->n += (size_t)vsnprintf(w->text + w->n, sizeof w->text - w->n, format, args);
  va_end(args);
  if (w->n + 200 > sizeof w->text) orc_die("a long program");
}

// A coordinate inside [0, extent), strides up to 3; an edge rule allows it to leave.
static void say_coordinate(writer *w, int64_t extent, int edge) {
  int64_t lo = 0, hi = 0, c[5] = {0};
  int terms = (int)draw(0, 9);
  terms = terms == 0 ? 0 : terms < 7 ? 1 : terms < 9 ? 2 : 3;
  for (int t = 0; t < terms && w->nindex > 0; t++) {
    int i = (int)draw(0, w->nindex - 1);
    int64_t k = chance(60) ? 1 : draw(-3, 3);
    if (k == 1 && i == 0 && w->pieces) k = -1;
    int64_t reach = k * (w->extent[i] - 1);
    if (c[i] != 0 || (!edge && (reach < 0 ? hi - lo - reach : hi - lo + reach) >= extent)) continue;
    c[i] = k;
    lo += reach < 0 ? reach : 0;
    hi += reach > 0 ? reach : 0;
  }
  int64_t offset = edge ? draw(-3, extent) - lo : draw(-lo, extent - 1 - hi);
  say(w, "%lld", (long long)offset);
  for (int i = 0; i < w->nindex; i++)
    if (c[i] != 0) say(w, "%+lld*i%d", (long long)c[i], i);
}

static void say_access(writer *w) {
  static const char *const rules[] = {"0", "wrap", "clamp", "reflect", "1.5"};
  int t = (int)draw(0, w->ntensor - 1), last = w->rank[t] - 1, edge = last >= 0 && chance(12);
  int each = edge && chance(50), own = 0, some = 0;  // a rule for all, or by coordinate
  say(w, "T%d[", t);
  for (int r = 0; r <= last; r++) {
    if (r > 0) say(w, ",");
    own = each && (chance(50) || (r == last && !some));
    some |= own;
    say_coordinate(w, w->shape[t][r], edge && (!each || own));
    if (own) say(w, " | %s", rules[draw(0, 4)]);
  }
  say(w, edge && !each ? " | %s]" : "]", rules[draw(0, 4)]);
}

static void say_expr(writer *w, int depth) {
  static const char *const real[] = {"exp(%", "sin(%", "tanh(%", "sigmoid(%", "silu(%", "gelu(%",
                                     "erf(%", "sqrt(2+abs(%)", "relu(%", "1/(2+(%)^2", "abs(%",
                                     "cos(%", "log(3+abs(%)", "(%)^3*(0.3", "-(%"};
  static const char *const cplx[] = {"exp(%", "sin(%", "tanh(%", "conj(%", "conj(2+%", "real(%",
                                     "abs(%", "complex(imag(%),real(1)", "-(%", "1/(5+(%)^2"};
  int kind = (int)draw(0, depth > 0 ? 9 : 1), any = (int)draw(0, w->complex ? 9 : 14);
  if (kind < 2) {
    say_access(w);
  } else if (kind < 5) {
    say_expr(w, depth - 1);
    say(w, "*");
    if (chance(25) && w->nindex > 0) say(w, "(i%d+0.5)", (int)draw(0, w->nindex - 1));
    else say_access(w);
  } else if (kind < 7) {
    say(w, chance(50) ? "(" : "(0.5*");
    say_expr(w, depth - 1);
    say(w, chance(50) ? "+" : "-");
    say_expr(w, depth - 1);
    say(w, ")");
  } else if (kind == 7 && !w->complex) {
    static const char *const open[] = {"max(", "min(", "where(T0[0,0]>"};
    int f = (int)draw(0, 2);
    say(w, "%s", open[f]);
    if (f == 2) say(w, "0.5,");
    say_expr(w, depth - 1);
    say(w, ",");
    say_expr(w, depth - 1);
    say(w, ")");
  } else {
    const char *f = w->complex ? cplx[any] : real[any], *hole = strchr(f, '%');
    say(w, "%.*s0.4*", (int)(hole - f), f);
    say_expr(w, depth - 1);
    say(w, "%s)", hole + 1);
  }
}

// One statement for piece number `piece` of `pieces` of tensor T{ntensor}.
static void say_statement(writer *w, int rank, const int64_t *extent, int piece, int pieces) {
  static const char *const folds[] = {"sum",       "sum", "sum", "mean", "prod",
                                      "logsumexp", "max", "var", "min",  "norm"};
  int nred = chance(60) ? (int)draw(1, 2) : 0, fold = (int)draw(0, w->complex ? 4 : 9);
  w->nindex = rank;
  w->pieces = pieces > 1;
  for (int i = 0; i < rank; i++) w->extent[i] = extent[i];
  say(w, "T%d", w->ntensor);
  for (int i = 0; i < rank; i++) {
    say(w, "%s", i == 0 ? "[" : ",");
    if (i == 0 && pieces > 1) say(w, "%d*i0+%d", pieces, piece);
    else say(w, "i%d=%lld", i, (long long)extent[i]);
  }
  say(w, rank > 0 ? "] = " : " = ");
  if (pieces > 1) say(w, "E%d[i0]*", w->ntensor);
  say(w, nred > 0 ? "%s[" : "(", folds[fold]);
  if (nred > 0) {
    for (int i = 0; i < nred; i++) {
      w->extent[w->nindex] = draw(1, 4);
      say(w, "%si%d=%lld", i ? "," : "", w->nindex, (long long)w->extent[w->nindex]);
      w->nindex++;
    }
    say(w, "](0.5*");
  }
  say_expr(w, 3);
  say(w, ")\n");
}

static void make_program(writer *w, int second) {
  memset(w, 0, sizeof *w);
  w->complex = chance(25);
  say(w, "input ");
  for (; w->ntensor < 3; w->ntensor++) {
    int t = w->ntensor;
    w->rank[t] = t == 0 ? 2 : (int)draw(0, 3);
    say(w, "%sT%d[", t ? ", " : "", t);
    for (int r = 0; r < w->rank[t]; r++) {
      w->shape[t][r] = draw(1, w->rank[t] == 3 ? 4 : 7);
      say(w, "%s%lld", r ? "," : "", (long long)w->shape[t][r]);
    }
    say(w, "]");
  }
  say(w, w->complex ? " : c128\n" : " : f64\n");
  int more = (int)draw(1, 4);
  for (int k = 0; k < more; k++, w->ntensor++) {
    int rank = (int)draw(0, 2), t = w->ntensor;
    int pieces = rank > 0 && chance(25) ? (int)draw(2, 3) : 1;
    int64_t extent[3];
    for (int r = 0; r < rank; r++) extent[r] = draw(1, 5);
    if (pieces > 1) say(w, "E%d[i=%lld] = 1.0+i*0.5\n", t, (long long)extent[0]);
    for (int p = 0; p < pieces; p++) say_statement(w, rank, extent, p, pieces);
    w->rank[t] = rank;
    for (int r = 0; r < rank; r++) w->shape[t][r] = extent[r] * (r == 0 ? pieces : 1);
  }
  say(w, second ? "F = 0" : "L = 0");
  for (int t = 3; t < w->ntensor; t++) {
    say(w, " + sum[i=1");
    for (int r = 0; r < w->rank[t]; r++) say(w, ",i%d=%lld", r, (long long)w->shape[t][r]);
    say(w, w->complex ? "](real(sin(0.3*T%d[" : "](sin(0.3*T%d[", t);
    for (int r = 0; r < w->rank[t]; r++) say(w, "%si%d", r ? "," : "", r);
    say(w, "])*(%d+i", t);
    for (int r = 0; r < w->rank[t]; r++) say(w, "+i%d", r);
    say(w, w->complex ? ")))" : "))");
  }
  say(w, "\n");
}

static void test_random(ein_ctx *ctx, int count) {
  for (int k = 0; k < count && failures < 5; k++) {
    writer w;
    machine m;
    int second = k % 5 == 4;
    make_program(&w, second);
    if (second) {  // the gradient of a weighted sum of gradients
      say(&w, "grad F wrt T0, T1, T2 as g0, g1, g2\nL = 0");
      for (int t = 0; t < 3; t++) {
        say(&w, " + sum[i=1");
        for (int r = 0; r < w.rank[t]; r++) say(&w, ",i%d=%lld", r, (long long)w.shape[t][r]);
        say(&w, w.complex ? "](real(g%d[" : "](g%d[", t);
        for (int r = 0; r < w.rank[t]; r++) say(&w, "%si%d", r ? "," : "", r);
        say(&w, w.complex ? "]*complex(1,0.5))" : "]");
        say(&w, "*(1+i");
        for (int r = 0; r < w.rank[t]; r++) say(&w, "+i%d", r);
        say(&w, "))");
      }
      say(&w, "\n");
    }
    say(&w, "grad L wrt T0, T1, T2 as dT0, dT1, dT2\noutput L, dT0, dT1, dT2\n");
    if (!machine_of(ctx, w.text, &m)) continue;
    fill(&m, -1, 1);
    check_differences(&m, w.text);
    machine_free(&m);
  }
}

// ---- whole networks -----------------------------------------------------------------------------

static const char training[] =
    "input X[b=5,f=4], W[f,h=6], u[h], V[h,c=3], v[c], y[b]\n"
    "H[b,h] = relu(sum[f](X[b,f]*W[f,h]) + u[h])\n"
    "Z[b,c] = H[b,h]*V[h,c] + v[c]\n"
    "P[b,c] = logsoftmax[c](Z[b,c])\n"
    "L = -sum[b,c](where(y[b]==c, P[b,c], 0))/5\n"
    "grad L wrt W, u, V, v as dW, du, dV, dv\n"
    "nW[f,h] = W[f,h] - 0.5*dW[f,h]\nnu[h] = u[h] - 0.5*du[h]\n"
    "nV[h,c] = V[h,c] - 0.5*dV[h,c]\nnv[c] = v[c] - 0.5*dv[c]\n"
    "output L, dW, du, dV, dv, nW, nu, nV, nv\n";

static void test_training(ein_ctx *ctx) {
  static const char *const names[] = {"W", "u", "V", "v"};
  machine m;
  if (!machine_of(ctx, training, &m)) return;
  fill(&m, -1, 1);
  int y = tensor_named(&m, "y"), loss = tensor_named(&m, "L");
  for (int i = 0; i < 5; i++) m.data[y][i] = i % 3;
  check_differences(&m, training);
  double first = 0;
  for (int step = 0; step < 100; step++) {
    execute(&m);
    if (step == 0) first = m.data[loss][0];
    for (int k = 0; k < 4; k++) {
      char next[8], grad[8];
      snprintf(next, sizeof next, "n%s", names[k]);
      snprintf(grad, sizeof grad, "d%s", names[k]);
      int a = tensor_named(&m, names[k]), b = tensor_named(&m, next), g = tensor_named(&m, grad);
      for (int64_t i = 0; i < m.count[a]; i++) {
        double want = m.data[a][i] - 0.5 * m.data[g][i];
        if (step == 0) CHECK(fabs(m.data[b][i] - want) <= 1e-15 * (1 + fabs(want)));
        m.data[a][i] = m.data[b][i];
      }
    }
  }
  CHECK(m.data[loss][0] < first / 10);
  machine_free(&m);
}

static void test_attention(ein_ctx *ctx) {
  static const char text[] =
      "input X[s=4,m=6], Wq[h=2,d=3,m], Wk[h,d,m], Wv[h,d,m], Wo[m,h,d], S[s,m]\n"
      "Q[h,s,d] = X[s,m]*Wq[h,d,m]\nK[h,t,d] = X[t,m]*Wk[h,d,m]\nV[h,t,d] = X[t,m]*Wv[h,d,m]\n"
      "T[h,s,t] = where(t<=s, sum[d](Q[h,s,d]*K[h,t,d])/sqrt(size(d)), -inf)\n"
      "P[h,s,t] = softmax[t](T[h,s,t])\nO[h,s,d] = P[h,s,t]*V[h,t,d]\n"
      "Y[s,m] = O[h,s,d]*Wo[m,h,d]\nL = sum[s,m](Y[s,m]*S[s,m])\n";
  static const char *const asked[] = {"grad L wrt X, Wq, Wk, Wv, Wo as dX, dWq, dWk, dWv, dWo\n",
                                      "grad Y wrt X, Wq, Wk, Wv, Wo as dX, dWq, dWk, dWv, dWo "
                                      "seed S\n"};
  char program[1024];
  for (int k = 0; k < 2; k++) {
    snprintf(program, sizeof program, "%s%soutput L, dX, dWq, dWk, dWv, dWo", text, asked[k]);
    differences(ctx, program, -1, 1);
  }
}

// ---- seeds, dtypes, results ---------------------------------------------------------------------

static void test_others(ein_ctx *ctx) {
  static const char *const texts[] = {
      "input A[3,4], S[3]\nY[i] = sin(sum[j](A[i,j]^2))\nL = sum(Y[i]*S[i])\n"
      "grad Y wrt A as dA seed S\noutput L, dA",
      "input A[3,4] : c128\ninput S[3] : c128\nY[i] = sin(sum[j](A[i,j]^2))\n"
      "L = sum(real(conj(S[i])*Y[i]))\ngrad Y wrt A as dA seed S\noutput L, dA",
      // of intermediate tensors, of tensors after the loss, of the loss itself
      "input x[4]\ny[i] = x[i]^2\nL = sum(y[i]*y[3-i])\ngrad L wrt y, x, L as g, h, one\n"
      "dx[i] = 2*x[i]*g[i]*one + 0*h[i]\noutput L, dx",
      "input x[3]\nL = sum(x[i]^3)\nz[i] = x[i]*L\ngrad L wrt x, z as g, dz\n"
      "dx[i] = g[i] + dz[i]\noutput L, dx",
      "input x[3], S[]\nF = sum(x[i]^3)\ngrad F wrt F, x as a, g seed S\nL = F*S\n"
      "dx[i] = g[i] + 0*a\ndS = F + 0*g[0] + 0*(a-S)\noutput L, dx, dS",
      // twice, and three times
      "input x[3], w[3]\nF = sum(sin(x[i])*x[2-i]^2)\ngrad F wrt x as g\nL = sum(g[i]*w[i])\n"
      "grad L wrt x, w as dx, dw\noutput L, dx, dw",
      "input x[2]\nF = exp(x[0]*x[1])\ngrad F wrt x as g\nG = g[0]*g[1]\ngrad G wrt x as h\n"
      "L = h[0] - h[1]^2\ngrad L wrt x as dx\noutput L, dx",
      "input x[3]\nF = prod[i](x[i]-0.5)\ngrad F wrt x as g\nL = g[0]^2 + g[1]*g[2]\n"
      "grad L wrt x as dx\noutput L, dx",
      // a seed of zeros leaves the derivative by it alone
      "input x[3], S[3]\ny[i] = sqrt(x[i])\ngrad y wrt x as g seed S\nL = sum(g[i]*(i+1))\n"
      "grad L wrt x, S as dx, dS\noutput L, dx, dS",
      "input x[3] : f64\nP[i=6] = x[2-i+3 | wrap]\nL = sum(P[i]*P[5-i])\ngrad L wrt x as dx\n"
      "output L, dx : f64",
      "input x[3]\nparam a = 2\nL = a*sum(x[i]^2)\ngrad L wrt x as dx\noutput L, dx"};
  for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) differences(ctx, texts[k], 0.3, 1.3);
  // dtypes of results: those of the tensors; roles: outputs when nobody reads them
  ein_program_desc d;
  ein_graph *g;
  memset(&d, 0, sizeof d);
  d.text = "input h[3] : f16\ninput x[3] : f32\ninput z[] : c64\n"
           "L = sum(h[i]*x[i]*real(z))\ngrad L wrt h, x, z as dh, dx, dz";
  CHECK(ein_graph_parse(ctx, &d, &g) == EIN_OK);
  for (int t = 0, seen = 0; g != NULL && t < g->ntensor; t++) {
    const eini_tensor *x = &g->tensor[t];
    if (x->role != EIN_ROLE_OUTPUT) continue;
    CHECK(x->dtype == (seen == 0 ? EIN_F16 : seen == 1 ? EIN_F32 : EIN_C64));
    CHECK(strcmp(x->name, seen == 0 ? "dh" : seen == 1 ? "dx" : "dz") == 0);
    seen++;
    CHECK(seen <= 3);
  }
  ein_graph_destroy(g);
}

// ---- mistakes -----------------------------------------------------------------------------------

static void test_mistakes(ein_ctx *ctx) {
  static const struct {
    const char *text;
    ein_status status;
    int line, column;
    const char *message;
  } rows[] = {
      {"grad M wrt x as d", EIN_ERR_NAME, 3, 6, "'M' is no tensor"},
      {"grad L wrt n as d", EIN_ERR_NAME, 3, 12, "'n' is a size, not a tensor"},
      {"grad L wrt a as d", EIN_ERR_NAME, 3, 12, "'a' is a param"},
      {"grad L wrt q as d", EIN_ERR_NAME, 3, 12, "'q' is no tensor"},
      {"grad L wrt Z as d\nZ = L", EIN_ERR_NAME, 3, 12, "'Z' is used before its definition"},
      {"grad L wrt x, k as d, e", EIN_ERR_DTYPE, 3, 15, "'k' is of i64: only floats"},
      {"grad L wrt x, x as d, e", EIN_ERR_NAME, 3, 15, "'x' occurs twice"},
      {"grad L wrt x, k as d", EIN_ERR_SYNTAX, 3, 1, "2 names after wrt, but 1 after as"},
      {"grad L wrt x as x", EIN_ERR_NAME, 3, 17, "the name 'x' is taken"},
      {"grad L wrt x as L", EIN_ERR_NAME, 3, 17, "'L' is defined more than once"},
      {"grad L wrt x, z as d, d", EIN_ERR_NAME, 3, 20, "'d' is defined more than once"},
      {"grad L wrt x as d\nd[i] = x[i]", EIN_ERR_NAME, 3, 17, "'d' is defined more than once"},
      {"grad L wrt x as d\ngrad L wrt x as d", EIN_ERR_NAME, 3, 17, "is defined more than once"},
      {"grad L wrt x as n", EIN_ERR_NAME, 3, 17, "the name 'n' is taken"},
      {"grad L wrt x as exp", EIN_ERR_NAME, 3, 17, "'exp' is a word of the language"},
      {"grad x wrt x as d", EIN_ERR_SHAPE, 3, 6, "'x' has 1 axes: without a seed"},
      {"C = z[0]^2\ngrad C wrt z as d", EIN_ERR_DTYPE, 4, 6, "'C' is complex"},
      {"grad k wrt x as d seed k", EIN_ERR_DTYPE, 3, 6, "'k' is of i64: only floats"},
      {"grad L wrt x as d seed x", EIN_ERR_SHAPE, 3, 24, "'x' does not have the shape of 'L'"},
      {"grad x wrt x as d seed k", EIN_ERR_DTYPE, 3, 24, "'k' is of i64: only floats"},
      {"grad x wrt x as d seed z", EIN_ERR_DTYPE, 3, 24, "'z' is complex, 'x' is real"},
      {"grad x wrt x as d seed w", EIN_ERR_NAME, 3, 24, "'w' is no tensor"},
      {"grad L wrt z as d\noutput d : f64", EIN_ERR_DTYPE, 3, 12, "'d' is of f64, 'z' of c128"},
      {"grad L wrt x as d\noutput d : i32", EIN_ERR_DTYPE, 3, 12, "'d' is of i32, 'x' of f64"},
      {"grad L x as d", EIN_ERR_SYNTAX, 3, 8, "wrt expected, not 'x'"},
      {"grad L wrt x d", EIN_ERR_SYNTAX, 3, 14, "as expected, not 'd'"},
      {"grad L wrt x as d seed", EIN_ERR_SYNTAX, 3, 23, "the name of a tensor expected"},
      {"grad L wrt x as d w", EIN_ERR_SYNTAX, 3, 19, "an operator or the end of the line"},
      {"grad", EIN_ERR_SYNTAX, 3, 5, "the name of a scalar expected"},
      {"grad 1 wrt x as d", EIN_ERR_SYNTAX, 3, 6, "the name of a scalar expected"},
      {"I = argmax(x[i])\nM = I*L\ngrad M wrt x as d", EIN_ERR_UNSUPPORTED, 5, 1,
       "the gradient of 'M' needs that of argmax, in the statement of 'I'"},
      {"b = any(x[i]>1)\nM = b+L\ngrad M wrt x as d", EIN_ERR_UNSUPPORTED, 5, 1,
       "that of any, in the statement of 'b'"},
      {"M = sum(x[i]>1)*1.5\ngrad M wrt x as d", EIN_ERR_UNSUPPORTED, 4, 1,
       "that of a value that is no float, in the statement of 'M.2'"},
      {"M = sum(2.5-(x[i]>1))\ngrad M wrt x as d", EIN_ERR_UNSUPPORTED, 4, 1,
       "that of a value that is no float, in the statement of 'M'"},
      {"M = sum(1.5+cast_i32(x[i]))\ngrad M wrt x as d", EIN_ERR_UNSUPPORTED, 4, 1,
       "that of a value that is no float, in the statement of 'M'"},
      {"M = sum(twice(x[i]))\ngrad M wrt x as d", EIN_ERR_UNSUPPORTED, 4, 1,
       "that of the function twice, in the statement of 'M'"},
      {"M = span(x[i])\ngrad M wrt x as d", EIN_ERR_UNSUPPORTED, 4, 1,
       "that of the monoid span, in the statement of 'M'"}};
  char text[512];
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    ein_program_desc d;
    ein_graph *g;
    memset(&d, 0, sizeof d);
    snprintf(text, sizeof text, "input z[3] : c128; input k[3] : i64; param a; input x[n=3]\n"
             "L = sum(x[i]^2) + real(z[0])\n%s", rows[k].text);
    d.text = text;
    ein_status st = ein_graph_parse(ctx, &d, &g);
    const ein_error *e = ein_ctx_error(ctx, 0);
    int ok = st == rows[k].status && e != NULL && e->line == rows[k].line &&
             e->column == rows[k].column && strstr(e->message, rows[k].message) != NULL;
    if (!ok) printf("%s\n%s\n", text, ein_ctx_message(ctx));
    CHECK(ok);
    CHECK(ein_ctx_errors(ctx) == 1);
    ein_graph_destroy(g);
  }
}

static void twice(int64_t n, const void *const *in, void *out, void *user) {
  (void)user;
  for (int64_t i = 0; i < n; i++) ((double *)out)[i] = 2 * ((const double *)in[0])[i];
}

static void span_merge(int64_t n, void *const *acc, const void *const *more, void *user) {
  (void)user;
  for (int64_t i = 0; i < n; i++)
    ((double *)acc[0])[i] = fmax(((double *)acc[0])[i], ((const double *)more[0])[i]);
}

// ---- from C -------------------------------------------------------------------------------------

// L = sum over h of (sum over r of X[2*h+r]*K[r])^2; ids: X, K, Y, L, dX, dK.
static ein_graph *built(ein_ctx *ctx, int *id) {
  static int64_t ten[] = {10}, three[] = {3}, extent[] = {4, 3}, hr[] = {2, 1}, r[] = {0, 1};
  static int64_t h[] = {1};
  ein_zmap proj[2], one;
  ein_stmt_desc s;
  ein_graph *g;
  if (ein_graph_create(ctx, &g) != EIN_OK) return NULL;
  memset(&s, 0, sizeof s);
  memset(proj, 0, sizeof proj);
  memset(&one, 0, sizeof one);
  proj[0].rows = proj[1].rows = one.rows = one.cols = 1;
  proj[0].cols = proj[1].cols = 2;
  proj[0].coef = hr;
  proj[1].coef = r;
  one.coef = h;
  ein_graph_add_tensor(g, "X", EIN_ROLE_INPUT, EIN_F64, 1, ten, &id[0]);
  ein_graph_add_tensor(g, "K", EIN_ROLE_INPUT, EIN_F64, 1, three, &id[1]);
  ein_graph_add_tensor(g, "Y", EIN_ROLE_TEMP, EIN_NONE, 1, NULL, &id[2]);
  ein_graph_add_tensor(g, "L", EIN_ROLE_OUTPUT, EIN_NONE, 0, NULL, &id[3]);
  ein_graph_add_tensor(g, "dX", EIN_ROLE_OUTPUT, EIN_NONE, 1, NULL, &id[4]);
  ein_graph_add_tensor(g, "dK", EIN_ROLE_OUTPUT, EIN_F64, 1, three, &id[5]);
  s.out = id[2];
  s.nindex = 2;
  s.nfree = 1;
  s.extent = extent;
  s.noperand = 2;
  s.operand = id;
  s.proj = proj;
  ein_graph_add_statement(g, &s);
  s.out = id[3];
  s.nindex = 1;
  s.nfree = 0;
  s.noperand = 1;
  s.operand = &id[2];
  s.proj = &one;
  s.map = "x0^2";
  ein_graph_add_statement(g, &s);
  return g;
}

static ein_status gradient_from_c(ein_ctx *ctx, char *print, size_t size) {
  int id[6];
  ein_graph *g = built(ctx, id);
  if (g == NULL) return EIN_ERR_NO_MEMORY;
  ein_graph_add_gradient(g, id[3], 2, id, -1, id + 4);
  ein_status st = ein_graph_finish(g);
  if (st == EIN_OK) check_pieces(g);
  ein_graph_print(g, print, size);
  ein_graph_destroy(g);
  return st;
}

static void test_from_c(ein_ctx *ctx) {
  static char a[8192], b[8192];
  static const struct {
    int loss, nwrt, wrt0, wrt1, seed, grad0, grad1;
    ein_status status;
    const char *message;
  } rows[] = {
      {9, 1, 0, 1, -1, 4, 5, EIN_ERR_ARGUMENT, "the loss or the seed"},
      {-1, 1, 0, 1, -1, 4, 5, EIN_ERR_ARGUMENT, "the loss or the seed"},
      {3, 0, 0, 1, -1, 4, 5, EIN_ERR_ARGUMENT, "counts, pointers"},
      {3, 1, 0, 1, 6, 4, 5, EIN_ERR_ARGUMENT, "the loss or the seed"},
      {3, 1, 7, 1, -1, 4, 5, EIN_ERR_ARGUMENT, "number 0 is no tensor"},
      {3, 2, 0, 1, -1, 4, -1, EIN_ERR_ARGUMENT, "number 1 is no tensor"},
      {3, 2, 0, 4, -1, 4, 5, EIN_ERR_NAME, "'dX' is not defined"},
      {5, 1, 0, 1, -1, 4, 5, EIN_ERR_NAME, "'dK' is not defined"},
      {3, 2, 0, 1, -1, 4, 4, EIN_ERR_NAME, "'dX' is defined already"},
      {3, 1, 0, 1, -1, 1, 4, EIN_ERR_NAME, "'K' is defined already"},
      {3, 1, 0, 1, -1, 2, 4, EIN_ERR_NAME, "'Y' is defined already"},
      {3, 1, 0, 1, -1, 5, 4, EIN_ERR_SHAPE, "'dK' does not have the shape of 'X'"},
      {2, 1, 0, 1, -1, 4, 5, EIN_ERR_SHAPE, "'Y' has 1 axes"},
      {2, 1, 0, 1, 0, 4, 5, EIN_ERR_SHAPE, "'X' does not have the shape of 'Y'"},
      {3, 2, 1, 1, -1, 4, 5, EIN_ERR_NAME, "'K' occurs twice"}};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    int id[6], wrt[2], grad[2];
    ein_graph *g = built(ctx, id);
    wrt[0] = rows[k].wrt0;
    wrt[1] = rows[k].wrt1;
    grad[0] = rows[k].grad0;
    grad[1] = rows[k].grad1;
    ein_status st = ein_graph_add_gradient(g, rows[k].loss, rows[k].nwrt, wrt, rows[k].seed, grad);
    int ok = st == rows[k].status && strstr(ein_ctx_message(ctx), rows[k].message) != NULL &&
             ein_graph_finish(g) == st;
    if (!ok) printf("row %d: %s\n", (int)k, ein_ctx_message(ctx));
    CHECK(ok);
    ein_graph_destroy(g);
  }
  CHECK(gradient_from_c(ctx, a, sizeof a) == EIN_OK);
  CHECK(ein_graph_add_gradient(NULL, 0, 0, NULL, -1, NULL) == EIN_ERR_ARGUMENT);
  ein_program_desc d;
  ein_graph *g;
  memset(&d, 0, sizeof d);
  d.text = "input X[10], K[3]\nY[i0] = X[2*i0+i1]*K[i1]\nL = sum[i0](Y[i0]^2)\n"
           "grad L wrt X, K as dX, dK\noutput L, dX, dK";
  CHECK(ein_graph_parse(ctx, &d, &g) == EIN_OK);
  ein_graph_print(g, b, sizeof b);
  ein_graph_destroy(g);
  int lines[2] = {0, 0};  // the same statements, under other names
  for (const char *p = a; *p != 0; p++) lines[0] += *p == '\n';
  for (const char *p = b; *p != 0; p++) lines[1] += *p == '\n';
  CHECK(lines[0] == lines[1]);
}

// ---- running out of memory ----------------------------------------------------------------------

static void test_memory(void) {
  static const char *const texts[] = {
      training,
      "input A[4,9], B[5]\nL = sum[i,j](A[i,i+j]*B[j])^2 + prod[k](B[k])\n"
      "grad L wrt A, B as dA, dB",
      "input X[2,3,9,8], K[4,3,3,2]\nY[n,o,h,w] = X[n,c,2*h+r,3*w+s]*K[o,c,r,s]\n"
      "L = sum(Y[n,o,h,w]^2)\ngrad L wrt X, K as dX, dK",
      "input A[3,4]\nE[i] = logsumexp[j](A[i,j])+max[j](A[i,j])+var[k](A[i,k])\nL = sum(E[i]^2)\n"
      "grad L wrt A as g\nM = sum(g[i,j]^3)\ngrad M wrt A as h"};
  for (int k = 0; k < 5; k++) {
    int done = 0;
    for (long at = 0; !done && at < 5000; at++) {
      counter c = {0, at, 0};
      ein_ctx_desc desc;
      ein_ctx *ctx;
      memset(&desc, 0, sizeof desc);
      desc.allocator.alloc_fn = count_alloc;
      desc.allocator.free_fn = count_free;
      desc.allocator.user = &c;
      ein_status st = ein_ctx_create(&desc, &ctx);
      if (st == EIN_OK && k < 4) {
        ein_program_desc d;
        ein_graph *g;
        memset(&d, 0, sizeof d);
        d.text = texts[k];
        st = ein_graph_parse(ctx, &d, &g);
        ein_graph_destroy(g);
      } else if (st == EIN_OK) {
        static char print[8192];
        st = gradient_from_c(ctx, print, sizeof print);
      }
      ein_ctx_destroy(ctx);
      CHECK(c.live == 0);
      CHECK(st == (c.calls > at ? EIN_ERR_NO_MEMORY : EIN_OK));
      done = c.calls <= at;
    }
    CHECK(done);
  }
}

int main(int argc, char **argv) {
  ein_ctx *ctx;
  int count = argc > 1 ? atoi(argv[1]) : FEW(400);
  uint64_t seed = argc > 2 ? (uint64_t)atoll(argv[2]) : 1;
  ein_function f = {"twice", 1, EIN_F64, twice, NULL};
  ein_monoid span;
  memset(&span, 0, sizeof span);
  span.name = "span";
  span.nstate = 1;
  span.merge_fn = span_merge;
  rng_state = seed;
  if (ein_ctx_create(NULL, &ctx) != EIN_OK) return 1;
  CHECK(ein_ctx_function(ctx, &f) == EIN_OK && ein_ctx_monoid(ctx, &span) == EIN_OK);
  test_functions(ctx);
  test_programs(ctx);
  test_kinks(ctx);
  test_training(ctx);
  test_attention(ctx);
  test_others(ctx);
  test_mistakes(ctx);
  test_from_c(ctx);
  test_memory();
  test_random(ctx, count);
  ein_ctx_destroy(ctx);
  if (failures > 0) printf("test_gradient: %d of %d checks failed\n", failures, checks);
  else printf("test_gradient: %d checks, %d random programs, seed %llu\n", checks, count,
              (unsigned long long)seed);
  return failures > 0;
}
