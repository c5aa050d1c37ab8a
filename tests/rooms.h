// What a place takes under a schedule is at most what is announced, and messages: of a statement,
// and of the next one, which begin early.
static double rooms_over(const ein_dist *d) {
  double most = 0;
  for (int i = 0; i < d->fabric.count && !d->fabric.shared; i++) {
    int64_t messages = 0, padding = 0, end = 0;
    for (int k = 0; k < d->nstmt; k++) {
      const eini_steps_stmt *e = &d->steps[k];
      const int64_t n = e->inbox_bytes[i] + (k + 1 < d->nstmt ? e[1].inbox_bytes[i] : 0);
      messages = n > messages ? n : messages;
      padding += 64 * (e->npoint + 1) * (e->w.n->s->noperand + 4);
      if (e->boxes_bytes[i] > 0 && e->boxes_at[i] + e->boxes_bytes[i] > end)
        end = e->boxes_at[i] + e->boxes_bytes[i];
    }
    for (int t = 0; t < d->g->ntensor; t++) {
      const eini_step_home *h = &d->home[t * d->fabric.count + i];
      padding += 64;
      if (!h->own && h->bytes > 0 && h->at + h->bytes > end) end = h->at + h->bytes;
    }
    const double ratio = (double)end / (double)(d->peak[i] + messages + padding);
    most = ratio > most ? ratio : most;
  }
  return most;
}

// What boxes of steps are counted to take is what a run allocates, for tests of schedules. After
// einsum_dist.h, check.h. more: nothing uses memory again.
static void check_rooms(const ein_schedule *s, const ein_dist *d, int more) {
  for (int k = 0; k < s->g->nstmt; k++) {
    const int n = s->g->stmt[k].noperand;
    eini_arena a;
    eini_rooms x;
    int64_t wrong = 0;
    eini_arena_init(&a, NULL);
    CHECK(eini_rooms_boxes_of(&a, s, k, 0, s->nest[k].grid->npoint, &x) == EIN_OK);
    for (int64_t i = 0; i < s->nest[k].grid->npoint; i++)
      for (int b = d->fabric.shared ? n : 0; b < n + 2; b++) {
        const double has = (double)d->steps[k].box[i * (n + 2) + b];
        const double counted = x.room[i * (n + 2) + b];
        wrong += counted > 0 ? has != counted : has > 32;  // of nothing there is one element
      }
    CHECK(wrong == 0);
    eini_arena_free(&a);
  }
  CHECK(more || rooms_over(d) <= 1);
}
