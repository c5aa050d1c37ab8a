// Panels of tile registers, packed whole from lines along k and from runs of lanes, value by value
// against where they belong; what is neither is left to others. Needs pick() and check().
#if EINI_CPU_DOTS
static const unsigned char *panel_value(const unsigned char *panels, int is_u, int group,
                                        int64_t panel, int64_t p, int64_t q) {
  const int64_t i = p % 32, row = q / group;
  const int64_t at = is_u ? row / 16 * 512 + i % 16 * 32 + i / 16 * 16 + row % 16 : row * 32 + i;
  return panels + 4 * (p / 32 * panel + at) + q % group * (4 / group);
}

// apart: runs of so many lanes; 0: lines along k. Returns whether they are to be packed whole.
static int check_panel(int is_u, int group, int64_t n, int64_t nk, int64_t apart) {
  enum { MOST = 96 * 96 * 8 };
  static unsigned char from[MOST], panels[MOST];
  const int64_t size = 4 / group, rows = ((nk + group - 1) / group + 15) / 16 * 16;
  int64_t row[96], col[96];
  eini_gett_kit kit;
  eini_gett_pack_arg a;
  memset(&kit, 0, sizeof kit);
  memset(&a, 0, sizeof a);
  kit.form = group == 2 ? EINI_GETT_AMX_BF16 : EINI_GETT_AMX_I8, kit.group = group;
  for (int i = 0; i < MOST; i++) from[i] = (unsigned char)(1 + pick(127));  // none subnormal
  for (int64_t i = 0; i < n; i++)
    row[i] = apart == 0 ? i * (nk + 3) : i + i / apart * 5;
  for (int64_t q = 0; q < nk; q++) col[q] = apart == 0 ? q : q * (row[n - 1] + 2);
  a.n = a.np = n, a.nk = nk, a.lanes = EINI_AMX_LANES, a.row = row, a.col = col;
  a.src = from, a.dst = panels;
  if (apart == 0) a.kind = EINI_GETT_ALONG, a.step = 1, a.count = nk;
  const int whole = apart == 0 ? is_u : apart >= 8, odd = group == 2 && whole && pick(2);
  if (odd) {
    unsigned char *x = from + size * (row[pick(n)] + col[pick(nk)]);
    x[0] = 1, x[1] = 128 * (unsigned char)pick(2);
  }
  memset(panels, GUARD_BYTE, sizeof panels);
  const int got = eini_gett_amx_pack(&kit, is_u, &a, rows * 32, rows);
  check(got == (whole ? odd : -1), "panels are packed whole, or not");
  for (int64_t p = 0; p < n && whole; p++)
    for (int64_t q = 0; q < rows * group; q++) {
      static const unsigned char zero[2] = {0, 0};
      const unsigned char *x = q < nk ? from + size * (row[p] + col[q]) : zero;
      const unsigned char *y = panel_value(panels, is_u, group, rows * 32, p, q);
      check(memcmp(x, y, (size_t)size) == 0, "a value of a panel");
    }
  for (int64_t i = (n + 31) / 32 * rows * 128; i < MOST && whole; i++)
    check(panels[i] == GUARD_BYTE, "beyond the panels");
  return whole;
}

static void check_panels(void) {
  long ways[3] = {0, 0, 0};
  if (eini_isa_best() != EINI_ISA_AVX512 || !(eini_cpu_has() & EINI_HAS_VNNI)) return;
  for (int i = 0; i < 400; i++) {
    const int is_u = (int)pick(2), group = pick(2) ? 2 : 4;
    static const int64_t runs[] = {0, 32, 11, 8, 3, 1000};
    const int64_t apart = runs[pick(6)], n = pick(91);
    const int whole =
        check_panel(is_u, group, apart == 3 ? 32 + n % 2 : n + 5, 1 + pick(80), apart);
    ways[!whole ? 2 : apart != 0]++;
  }
  printf("panels of tile registers: %ld of lines, %ld of lanes, %ld of neither\n", ways[0], ways[1],
         ways[2]);
}
#else
static void check_panels(void) {}
#endif
