// What boxes of steps are counted to take is what a run allocates, for tests of schedules. After
// einsum_dist.h, check.h.
static void check_rooms(const ein_schedule *s, const ein_dist *d) {
  for (int k = 0; k < s->g->nstmt; k++) {
    const int n = s->g->stmt[k].noperand;
    eini_arena a;
    eini_rooms x;
    int64_t wrong = 0;
    eini_arena_init(&a, NULL);
    CHECK(eini_rooms_boxes_of(&a, s, k, &x) == EIN_OK);
    for (int64_t i = 0; i < s->nest[k].grid->npoint; i++)
      for (int b = d->fabric.shared ? n : 0; b < n + 2; b++) {
        const double has = (double)d->rooms[k].box[i * (n + 2) + b];
        const double counted = x.room[i * (n + 2) + b];
        wrong += counted > 0 ? has != counted : has > 32;  // of nothing there is one element
      }
    CHECK(wrong == 0);
    eini_arena_free(&a);
  }
}
