// Programs, schedules from texts, and random nests, for tests. After check.h and util.h.
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
