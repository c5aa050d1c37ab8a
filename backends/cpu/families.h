// ================================================================================================
// >>families  kernels of contractions
// The least prediction wins; on a tie the family named first. Folds in order are the first's.
// ================================================================================================

static const eini_cpu_family *const eini_cpu_families[] = {
    &eini_gett_family, &eini_dir_tiny, &eini_dir_sums_family, &eini_dir_matvec, &eini_dir_dot,
    &eini_dir_inner_family, &eini_dir_small, &eini_dir_elements, &eini_dir_rows_family,
    &eini_moved_family, &eini_lanes_family, &eini_lanes_batch, &eini_gett_bf16, &eini_gett_i16,
    &eini_gett_i8, &eini_gett_amx_f, &eini_gett_amx_i, NULL};

#define EINI_FAMILY_WORD 39    // of ein_choice.state: the number of the family

// Of as many parts as a family allows, `width` in all: those with the least work in the largest.
static void eini_cpu_share(ein_choice *choice, int64_t width) {
  int64_t most[3], got[3] = {1, 1, 1};
  double least = 2;
  for (int i = 0; i < 3; i++) most[i] = eini_max64(choice->grid[i], 1);
  for (int64_t b = 1; b <= eini_min64(most[0], width); b++) {
    for (int64_t m = 1; m <= eini_min64(most[1], width / b); m++) {
      const int64_t n = eini_min64(most[2], width / b / m), g[3] = {b, m, n};
      double work = 1;
      for (int i = 0; i < 3; i++) work *= (double)((most[i] + g[i] - 1) / g[i]) / (double)most[i];
      if (work > least || (work == least && b <= got[0])) continue;
      least = work;
      memcpy(got, g, sizeof g);
    }
  }
  memcpy(choice->grid, got, sizeof got);
}

// Do elements, and bytes of them in a few copies, have counts? Only strides of 0 make them larger.
static int eini_cpu_countable(const ein_contract *c) {
  const ein_axes *const axes[4] = {&c->batch, &c->m, &c->n, &c->k};
  double work = 1;
  for (int g = 0; g < 4; g++)
    for (int i = 0; i < axes[g]->n; i++) work *= (double)axes[g]->extent[i];
  return work < (double)(INT64_MAX / 1024);
}

static int eini_cpu_contract_plan(const eini_rated *m, const ein_contract *c, int width, int nth,
                                  ein_choice *choice) {
  ein_choice one;
  int found = 0, able = 0;
  if (!eini_cpu_countable(c)) return 0;
  for (int i = 0; eini_cpu_families[i] != NULL && (i == 0 || !c->ordered); i++) {
    memset(&one, 0, sizeof one);
    if (!eini_cpu_families[i]->plan(m, c, width, &one)) continue;
    if (nth >= 0 && able++ != nth) continue;
    if (found && one.seconds >= choice->seconds) continue;
    *choice = one;
    choice->state[EINI_FAMILY_WORD] = i;
    found = 1;
  }
  if (!found && nth >= 0) found = eini_gett_other(m, c, width, nth - able, choice);
  if (!found) return 0;
  eini_cpu_share(choice, width);
  if (eini_cpu_families[choice->state[EINI_FAMILY_WORD]] == &eini_gett_family)
    eini_gett_share(&m->is, c, choice);
  return 1;
}

static ein_status eini_cpu_contract_run(const eini_cpu *m, const ein_contract *c,
                                        const ein_choice *choice, const ein_part *part,
                                        void *scratch) {
  return eini_cpu_families[choice->state[EINI_FAMILY_WORD]]->run(m, c, choice, part, scratch);
}
