// Programs, schedules from texts, random nests and statements, for tests. After check.h and util.h.
static ein_ctx *ctx;

static ein_graph *parse(const char *text) {
  ein_program_desc d;
  ein_graph *g = NULL;
  memset(&d, 0, sizeof d);
  d.text = text;
  if (ein_graph_parse(ctx, &d, &g) != EIN_OK) printf("%s\n%s\n", text, ein_ctx_message(ctx));
  CHECK(g != NULL);
  return g;
}

static ein_schedule *schedule_of(const ein_graph *g, const char *text, int64_t places) {
  ein_schedule_desc d;
  ein_schedule *s = NULL;
  memset(&d, 0, sizeof d);
  d.text = text;
  d.places = places;
  if (ein_schedule_create(ctx, g, &d, &s) != EIN_OK)
    printf("%s\n%s\n", text == NULL ? "" : text, ein_ctx_message(ctx));
  CHECK(s != NULL);
  return s;
}

static const char *read_file(const char *name) {
  static char text[4096];
  char path[256];
  snprintf(path, sizeof path, "examples/schedules/%s.sched", name);
  FILE *f = fopen(path, "rb");
  const size_t n = f == NULL ? 0 : fread(text, 1, sizeof text - 1, f);
  CHECK(n > 0);
  if (f != NULL) fclose(f);
  text[n] = 0;
  int lines = 0;
  for (const char *c = text; *c; c++) lines += *c == '\n';
  CHECK(lines <= 12);
  return text;
}

// Commands for a statement of the indices i, j, k and operands A, B; they may be in no legal order.
EINI_UNUSED static void draw_nest(char *text, size_t size, int gx, int gy) {
  // Two of the three indices over places, the third cut, and one of the inner loops.
  static const char index[] = "ijk";
  const int third = (int)draw(0, 2), one = (third + 1) % 3, two = (third + 2) % 3;
  const int again_cut = chance(50) ? one : two, other = one + two - again_cut;
  int at = snprintf(text, size, "machine gx=%d, gy=%d; place A,B xy->yx\n"
                    "distribute([%c, %c], [%co, %co], [%ci, %ci], [gx, gy])\n", gx, gy,
                    index[one], index[two], index[one], index[two], index[one], index[two]);
  at += snprintf(text + at, size - (size_t)at, "%s(%c, u, v, %d)\n%s(%ci, w, x, %d)\n",
                 chance(50) ? "divide" : "split", index[third], (int)draw(1, 4),
                 chance(50) ? "divide" : "split", index[again_cut], (int)draw(1, 4));
  at += snprintf(text + at, size - (size_t)at, chance(50) ? "reorder(u, w, %ci, v, x)\n" :
                 chance(80) ? "reorder(w, u, x, v, %ci)\n" : "reorder(w, %ci, u, x, v)\n",
                 index[other]);
  if (chance(70))
    at += snprintf(text + at, size - (size_t)at, "rotate(%s, [%co, %co], t)\n",
                   chance(50) ? "u" : "w", index[one], index[two]);
  if (chance(50))
    snprintf(text + at, size - (size_t)at, "communicate(%s, %ci)\n",
             chance(50) ? "A" : "C", index[other]);
}

// ---- random statements ----

// Axes of A and B as digits, the rank of C, and how many types: real ones, all but complex, all.
// In those of several statements, and by sums of indices, %d stands for the extent of k.
EINI_UNUSED static const struct {
  const char *stmt;
  int a, b, rank, types;
} statements[] = {
    {"C[i,j] = sum[k](A[i,k] * B[k,j])", 02, 021, 2, 8},
    {"C[j,i] = max[k](A[k,i] + B[k,j])", 020, 021, 2, 7},
    {"C[i,j] = min[k](A[i,j] - B[j,k])", 01, 012, 2, 7},
    {"C[j,i] = prod[k](A[i,k] * B[i,j])", 02, 01, 2, 8},
    {"C[i,j] = sum[k](A[i,k] * B[k,j] + i - 2 * k)", 02, 021, 2, 8},
    {"C[i,j,k] = A[k,i] + B[j,k] * 2 + j", 020, 012, 3, 8},
    {"C[i] = sum[j,k](A[i,j] * B[i,k])", 01, 02, 1, 8},
    {"C[j] = any[i,k](A[i,k] > B[k,j])", 02, 021, 1, 7},
    {"C[i,j] = logsumexp[k](A[i,k] - B[j,k])", 02, 012, 2, 2},
    {"C = sum[i,j,k](A[i,k] * B[j,k])", 02, 012, 0, 8},
    {"C[i,j] = mean[k](A[i,k] - B[k,j])", 02, 021, 2, 2},
    {"C[j,i] = var[k](A[k,i] * B[k,j])", 020, 021, 2, 2},
    {"C[i] = argmax[j,k](A[i,j] - B[i,k])", 01, 02, 1, 7},
    {"C[i,j] = argmin[k](A[i,k] + B[k,j])", 02, 021, 2, 7},
    {"C = argmax[i,j,k](A[i,k] * B[j,k])", 02, 012, 0, 7},
    {"C[j,i] : f64 = span[k](A[i,k] + B[k,j])", 02, 021, 2, 7},
    {"C[i,j] : f32 = spread[k](A[i,k] * B[k,j])", 02, 021, 2, 7},
    {"C[2*i,j] = max[k](A[i,k] + B[k,j] * i); C[2*i+1,j] = sum[k](A[i,k] * B[k,j])", 02, 021, 2, 7},
    {"C[j,i] = sum[k](A[i,k] - B[k,j]); C[j,i+size(m)] = max[k](B[k,j] - A[i,k])", 02, 021, 2, 7},
    {"C[i,%d*j+k] = A[i,k] + B[k,j] - j", 02, 021, 2, 8},
    {"C[%d*i+k,2*j] = A[i,k] * B[k,j]; C[%d*i+k,2*j+1] = mean[l=4](A[i,k] - B[k,j] * l)", 02, 021,
     2, 2}};

EINI_UNUSED static const char *draw_program(char *text, size_t size, const int64_t *e, int *which) {
  static const char *const types[] = {"f64", "f32", "i32", "i64", "bf16", "f16", "i8", "c64"};
  const int k = *which = (int)draw(0, (int64_t)(sizeof statements / sizeof *statements) - 1);
  const int a = statements[k].a, b = statements[k].b;
  const char *type = types[draw(0, statements[k].types - 1)];
  int at = snprintf(text, size, "input A[m=%d,%d], B[%d,%d] : %s\n", (int)e[a >> 3],
                    (int)e[a & 7], (int)e[b >> 3], (int)e[b & 7], type);
  snprintf(text + at, size - (size_t)at, statements[k].stmt, (int)e[2], (int)e[2]);
  return statements[k].stmt;
}

// The commands of a statement that are behind a machine, for each of two.
EINI_UNUSED static void draw_both(char *text, size_t size, int gx, int gy) {
  char other[512];
  draw_nest(text, size, gx, gy);
  char *end = strchr(text, '\n') + 1;
  snprintf(other, sizeof other, "%s", end);
  const int at = snprintf(end, size - (size_t)(end - text), "on C 1\n%son C 2\n", other);
  if (chance(70)) snprintf(end + at, size - (size_t)(end - text + at), "%s", other);
}

// Where C lies.
EINI_UNUSED static void draw_place(char *text, size_t size, int rank) {
  const size_t at = strlen(text);
  snprintf(text + at, size - at, "place C %.*s->", rank, "xyz");
  for (int m = 0, last = -1; m < 2; m++) {
    const int axis = (int)draw(-1, rank - 1);
    if (axis < 0 || axis == last) strcat(text, chance(50) ? "0" : "*");
    else strncat(text, &"xyz"[axis], 1);
    if (axis >= 0 && axis != last && m == 1 && chance(50)) strcat(text, ":2");
    last = axis;
  }
  strcat(text, "\n");
}
