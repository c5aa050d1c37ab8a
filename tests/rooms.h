// What a place takes under a schedule, at home and in a provider's memory, is at most what is
// announced, and messages: of a statement, and of the next one, which begin early.
static double rooms_over(const ein_dist *d) {
  const int memories = d->fabric.count;
  double most = 0;
  for (int i = 0; i < memories && !d->fabric.shared; i++) {
    int64_t messages = 0, padding = 0, ends = 0;
    for (int away = 0; away < (d->away != NULL ? 2 : 1); away++) {
      const int side = i + away * memories;
      int64_t end = 0, each = 0;
      for (int k = 0; k < d->nstmt; k++) {
        const eini_steps_stmt *e = &d->steps[k];
        const int64_t n = e->inbox_bytes[side] + (k + 1 < d->nstmt ? e[1].inbox_bytes[side] : 0);
        each = n > each ? n : each;
        padding += 64 * (e->npoint + 1) * (e->w.n->s->noperand + 4);
        if (e->boxes_bytes[side] > 0 && e->boxes_at[side] + e->boxes_bytes[side] > end)
          end = e->boxes_at[side] + e->boxes_bytes[side];
      }
      for (int t = 0; t < d->g->ntensor; t++) {
        const eini_step_home *h = &d->home[t * memories + i];
        padding += 64;
        if (!h->own && h->box.away == away && h->bytes > 0 && h->at + h->bytes > end)
          end = h->at + h->bytes;
      }
      messages += each;
      ends += end;
    }
    const double ratio = (double)ends / (double)(d->peak[i] + messages + padding);
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
