// Statements under schedules: random ones, of many types, folds and images, against the oracle, on
// serial, threads and copying; what moves is what was counted; deterministic graphs keep their
// bits, and decompositions theirs where nothing is reordered; allocations that fail.
//
//   test_steps [cases [seed]]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "../backends/einsum_dist.h"
#include "oracle.h"
#include "check.h"
#include "util.h"
#include "monoids.h"
#include "schedules.h"
#include "rooms.h"
#include "threads.h"

enum { TENSORS = 12 };

// The tensors of a graph as dense buffers, and as what a run is given: some lie strided.
typedef struct tensors {
  void *data[TENSORS], *plain[TENSORS], *lies[TENSORS];
  double *err[TENSORS];
  ein_ztensor view[TENSORS];
  int64_t stride[TENSORS][4];
  ein_binding bind[TENSORS];
  const void *in[TENSORS], *flat_in[TENSORS];
  void *out[TENSORS], *flat_out[TENSORS];
  int n, nbind, nin, nout;
} tensors;

// Element (0, .., 0) of a tensor whose axes lie in the reverse order, two elements apart, the first
// one backwards.
static char *strided(tensors *x, int t, const eini_tensor *e, size_t size) {
  int64_t n = 2, back = 0;
  for (int r = 0; r < e->rank; r++) {
    x->stride[t][r] = r == 0 && e->rank > 1 ? -n : n;
    if (r == 0 && e->rank > 1) back = n * eini_max64(e->shape[0] - 1, 0);
    n *= eini_max64(e->shape[r], 1);
  }
  x->lies[t] = orc_alloc(n, size);
  x->view[t].dtype = e->dtype;
  x->view[t].rank = e->rank;
  x->view[t].shape = e->shape;
  x->view[t].strides = x->stride[t];
  x->bind[x->nbind].name = e->name;
  x->bind[x->nbind++].view = &x->view[t];
  return (char *)x->lies[t] + (size_t)back * size;
}

// Copies between a tensor that lies strided and its plain buffer.
static void copied(const tensors *x, int t, const eini_tensor *e, char *at, int out) {
  const size_t size = orc_size(e->dtype);
  int64_t plain[4];
  char *p = (char *)(out ? x->plain[t] : x->data[t]);
  eini_dist_dense(e->rank, e->shape, plain);
  if (out) eini_dist_copy(e->rank, e->shape, p, plain, at, x->stride[t], size);
  else eini_dist_copy(e->rank, e->shape, at, x->stride[t], p, plain, size);
}

static void tensors_of(const ein_graph *g, tensors *x, int lie) {
  memset(x, 0, sizeof *x);
  x->n = (int)g->ntensor;
  CHECK(x->n <= TENSORS);
  for (int t = 0; t < x->n; t++) {
    const eini_tensor *e = &g->tensor[t];
    const size_t size = orc_size(e->dtype);
    x->data[t] = orc_alloc(orc_count(e), size);
    x->plain[t] = orc_alloc(orc_count(e), size);
    x->err[t] = (double *)orc_alloc(orc_count(e), sizeof(double));
    char *at = (char *)x->plain[t];
    if (e->role == EIN_ROLE_INPUT) {
      orc_random_fill(e->dtype, orc_count(e), x->data[t], 7 + (uint64_t)t);
      at = (char *)x->data[t];
    }
    if (lie && e->role != EIN_ROLE_TEMP && chance(50)) {
      at = strided(x, t, e, size);
      if (e->role == EIN_ROLE_INPUT) copied(x, t, e, at, 0);
    }
    if (e->role == EIN_ROLE_INPUT) x->flat_in[x->nin] = x->data[t], x->in[x->nin++] = at;
    if (e->role == EIN_ROLE_OUTPUT) x->flat_out[x->nout] = x->plain[t], x->out[x->nout++] = at;
  }
  orc_eval_err(g, x->data, x->err, NULL);
}

static void tensors_free(tensors *x) {
  for (int t = 0; t < x->n; t++) {
    free(x->data[t]);
    free(x->plain[t]);
    free(x->lies[t]);
    free(x->err[t]);
  }
}

// Forgets outputs, so that each run has to write them.
static void forget(const ein_graph *g, tensors *x) {
  for (int t = 0, k = 0; t < x->n; t++) {
    if (g->tensor[t].role != EIN_ROLE_OUTPUT) continue;
    const int64_t n = orc_count(&g->tensor[t]);
    memset(x->plain[t], 0x5a, (size_t)n * orc_size(g->tensor[t].dtype));
    if (x->lies[t] != NULL && n > 0) copied(x, t, &g->tensor[t], (char *)x->out[k], 0);
    k++;
  }
}

// want NULL: outputs are compared with the oracle; else bit by bit with these.
static int right(const ein_graph *g, tensors *x, void *const *want) {
  int good = 1;
  for (int t = 0, k = 0; t < x->n; t++) {
    const eini_tensor *e = &g->tensor[t];
    const int64_t n = orc_count(e);
    if (e->role != EIN_ROLE_OUTPUT) continue;
    if (x->lies[t] != NULL && n > 0) copied(x, t, e, (char *)x->out[k], 1);
    good &= want == NULL ? orc_compare_err(e->dtype, n, x->plain[t], x->data[t], x->err[t])
                         : memcmp(x->plain[t], want[k], (size_t)n * orc_size(e->dtype)) == 0;
    k++;
  }
  return good;
}

static ein_status place_moves(void *user, const ein_schedule_move *m) {
  ein_place_stats *place = (ein_place_stats *)user;
  place[m->from].sent_bytes -= m->bytes;
  place[m->to].received_bytes -= m->bytes;
  return EIN_OK;
}

// The last of what is told of runs on a clock.
static ein_status clocked(void *user, const ein_dist_event *e) {
  double *last = (double *)user;
  CHECK(e->begin >= 0 && e->end >= e->begin && (e->level >= -1 || e->bytes > 0));
  *last = fmax(*last, e->end);
  return EIN_OK;
}

static void counted(const ein_graph *g, const ein_schedule *s, const ein_dist *d,
                    const ein_fabric *f, const ein_dist_stats *stats) {
  ein_dist_info info;
  int64_t bytes = 0, messages = 0, sent = 0, sends = 0, tasks = 0;
  for (int k = 0; k < ein_graph_statements(g); k++) {
    ein_schedule_info each;
    CHECK(ein_schedule_cost(ctx, s, k, place_moves, stats->place, &each) == EIN_OK);
    CHECK(ein_dist_bytes(d, k) == each.bytes);
    bytes += each.bytes;
    messages += each.messages;
  }
  CHECK(ein_dist_info_get(d, &info) == EIN_OK);
  CHECK(stats->bytes == bytes && stats->messages == messages);
  CHECK(info.bytes == bytes && info.messages == messages && info.tasks == stats->tasks);
  for (int64_t q = 0; q < stats->nplace; q++) {
    CHECK(stats->place[q].sent_bytes == 0 && stats->place[q].received_bytes == 0);
    tasks += stats->place[q].tasks;
  }
  CHECK(tasks == stats->tasks);
  ein_fabric_moved(f, &sends, &sent);
  if (!f->shared) CHECK(sends == 2 * messages && sent == 2 * bytes);
}

static ein_status fabric_of(int kind, int places, ein_fabric *f) {
  const ein_status st = kind == 0   ? ein_fabric_serial(places, f)
                        : kind == 1 ? ein_fabric_threads(places, f)
                        : kind == 4 ? ein_fabric_sim(ctx, places, NULL, f)
                                    : ein_fabric_copying(ctx, places, f);
  f->threads = kind % 2;
  return st;
}

// ---- processes that drive some of the places ----

static ein_status no_send(void *user, int from, int to, int64_t tag, const void *data,
                          size_t bytes, ein_ticket *ticket) {
  (void)user, (void)from, (void)to, (void)tag, (void)data, (void)bytes;
  return *ticket = 0, EIN_ERR_INTERNAL;
}

static ein_status no_recv(void *user, int to, int from, int64_t tag, void *data, size_t bytes,
                          ein_ticket *ticket) {
  (void)user, (void)from, (void)to, (void)tag, (void)data, (void)bytes;
  return *ticket = 0, EIN_ERR_INTERNAL;
}

static ein_status no_wait(void *user, ein_ticket ticket) {
  (void)user, (void)ticket;
  return EIN_OK;
}

static ein_status no_agree(void *user, ein_status *st) {
  (void)user, (void)st;
  return EIN_OK;
}

// What a plan does at places [first, first + count), whatever the order.
static uint64_t doings(const ein_dist *d, int first, int count) {
  uint64_t sum = 0;
  for (int k = 0; k < d->nstmt; k++) {
    const eini_steps_stmt *e = &d->steps[k];
    for (int64_t i = 0; i < e->nmove; i++) {
      const eini_step_move *v = &e->move[i];
      const int64_t place = d->fabric.first + v->place;
      const int64_t word[] = {k, v->kind, place, v->peer, v->access, v->owner, v->tag, v->point,
                              v->step, v->pieces, v->bytes};
      if (place >= first && place < first + count) sum += eini_hash(word, sizeof word, 0);
    }
    for (int64_t i = 0; i < e->ntask; i++) {
      const eini_step_task *t = &e->task[i];
      const int64_t place = eini_grid_place(e->w.n->grid, t->point);
      const int64_t word[] = {k, t->point, t->step, t->fresh, t->ends, t->nshare};
      if (place >= first && place < first + count) sum += eini_hash(word, sizeof word, 1);
    }
  }
  return sum;
}

// What processes derive, each of the places that it drives, is what one process derives of all.
static void processes_of(const ein_graph *g, const ein_schedule *s, int places) {
  ein_fabric f;
  ein_dist_desc how;
  ein_dist *all, *d;
  memset(&how, 0, sizeof how);
  how.fabric = &f;
  how.schedule = s;
  CHECK(ein_fabric_copying(ctx, places, &f) == EIN_OK);
  const ein_status st = ein_dist_create(ctx, g, &how, &all);
  const int n = (int)draw(2, places > 2 ? places : 2);
  for (int r = 0; r < n && places > 1 && st == EIN_OK; r++) {
    ein_fabric mine;
    memset(&mine, 0, sizeof mine);
    mine.name = "nothing";
    mine.places = places;
    mine.first = places * r / n;
    mine.count = places * (r + 1) / n - mine.first;
    mine.send_fn = no_send, mine.recv_fn = no_recv, mine.wait_fn = no_wait;
    mine.agree_fn = no_agree;
    how.fabric = &mine;
    CHECK(ein_dist_create(ctx, g, &how, &d) == EIN_OK);
    CHECK(doings(d, 0, places) == doings(all, mine.first, mine.count));
    for (int q = 0; q < mine.count; q++)
      CHECK(ein_dist_peak(d, mine.first + q) == ein_dist_peak(all, mine.first + q));
    ein_dist_destroy(d);
  }
  ein_dist_destroy(all);
  ein_fabric_destroy(&f);
}

// ---- blocks ----

// Copies what lies in a box between a whole tensor and the block, dense in exactly its memory.
static void block_copy(const eini_tensor *e, const int64_t *origin, const int64_t *extent,
                       char *whole, char *block, int out) {
  const size_t size = orc_size(e->dtype);
  const int64_t n = orc_count(e);
  for (int64_t i = 0; i < n; i++) {
    int64_t at = 0, step = 1, left = i;
    int in = 1;
    for (int r = e->rank - 1; r >= 0; left /= e->shape[r--]) {
      const int64_t x = left % e->shape[r] - origin[r];
      in &= x >= 0 && x < extent[r];
      at += x * step;
      step *= extent[r];
    }
    if (!in) continue;
    if (out) memcpy(whole + (size_t)i * size, block + (size_t)at * size, size);
    else memcpy(block + (size_t)at * size, whole + (size_t)i * size, size);
  }
}

static int runs_in_blocks;

// The same with nothing bound but blocks, and nothing whole anywhere.
static void blocks_of(const ein_graph *g, const ein_schedule *s, int places, tensors *x,
                      void *const *want) {
  static char *block[TENSORS][64];
  const void *in[TENSORS * 64];
  void *out[TENSORS * 64];
  int64_t origin[16], extent[16], n;
  int nin = 0, nout = 0;
  ein_fabric f;
  ein_dist_desc how;
  ein_dist *d;
  ein_run run;
  memset(&how, 0, sizeof how);
  memset(&run, 0, sizeof run);
  CHECK(fabric_of(2 + runs_in_blocks % 2, places, &f) == EIN_OK);
  how.fabric = &f;
  how.schedule = s;
  how.blocks = 1;
  const ein_status st = places > 64 ? EIN_ERR_UNSUPPORTED : ein_dist_create(ctx, g, &how, &d);
  if (st != EIN_OK) {
    CHECK(st == EIN_ERR_UNSUPPORTED);
    ein_fabric_destroy(&f);
    return;
  }
  for (int t = 0; t < g->ntensor; t++) {
    const eini_tensor *e = &g->tensor[t];
    for (int q = 0; q < places && e->role != EIN_ROLE_TEMP; q++) {
      CHECK(ein_dist_block(d, t, q, origin, extent, &n) == EIN_OK);
      block[t][q] = n > 0 ? (char *)malloc((size_t)n * orc_size(e->dtype)) : NULL;
      if (n > 0) memset(block[t][q], 0x5a, (size_t)n * orc_size(e->dtype));
      if (n > 0 && e->role == EIN_ROLE_INPUT)
        block_copy(e, origin, extent, (char *)x->data[t], block[t][q], 0);
      if (e->role == EIN_ROLE_INPUT) in[nin++] = block[t][q];
      else out[nout++] = block[t][q];
    }
  }
  run.in = in;
  run.out = out;
  for (int again = 0; again < 2; again++) CHECK(ein_dist_execute(d, &run, NULL) == EIN_OK);
  for (int t = 0, k = 0; t < g->ntensor; t++) {
    const eini_tensor *e = &g->tensor[t];
    char *whole = e->role == EIN_ROLE_OUTPUT ? (char *)orc_alloc(orc_count(e), 16) : NULL;
    for (int q = 0; q < places && e->role != EIN_ROLE_TEMP; q++) {
      CHECK(ein_dist_block(d, t, q, origin, extent, &n) == EIN_OK);
      if (whole != NULL && n > 0) block_copy(e, origin, extent, whole, block[t][q], 1);
      free(block[t][q]);
    }
    if (whole == NULL) continue;
    CHECK(want == NULL ? orc_compare_err(e->dtype, orc_count(e), whole, x->data[t], x->err[t])
                       : memcmp(whole, want[k], (size_t)orc_count(e) * orc_size(e->dtype)) == 0);
    free(whole);
    k++;
  }
  runs_in_blocks++;
  ein_dist_destroy(d);
  ein_fabric_destroy(&f);
}

// Runs a graph under a schedule on all fabrics, copying with and without threads; EIN_OK, or why it
// is refused.
static ein_status run_of(const ein_graph *g, const ein_schedule *s, int places, int exact) {
  tensors x;
  ein_run run;
  ein_status st = EIN_OK;
  void *want[TENSORS];
  tensors_of(g, &x, 1);
  memset(&run, 0, sizeof run);
  run.in = x.flat_in;
  run.out = want;
  for (int t = 0, k = 0; t < x.n; t++)
    if (g->tensor[t].role == EIN_ROLE_OUTPUT)
      want[k++] = orc_alloc(orc_count(&g->tensor[t]), orc_size(g->tensor[t].dtype));
  if (exact) {
    ein_plan *plan;
    CHECK(ein_plan_graph(ctx, g, 0, NULL, NULL, &plan) == EIN_OK);
    CHECK(ein_plan_execute(plan, &run) == EIN_OK);
    ein_plan_destroy(plan);
  }
  run.in = x.in;
  run.out = x.out;
  for (int kind = 0; kind < 5 && st == EIN_OK; kind++) {
    ein_fabric f;
    ein_dist_desc how;
    ein_dist *d;
    ein_dist_stats stats;
    CHECK(fabric_of(kind, places, &f) == EIN_OK);
    memset(&how, 0, sizeof how);
    memset(&stats, 0, sizeof stats);
    stats.nplace = places;
    stats.place = (ein_place_stats *)orc_alloc(places, sizeof *stats.place);
    static int turn;
    how.no_overlap = turn++ % 2, how.no_reuse = turn % 3 == 0;
    how.fabric = &f;
    how.schedule = s;
    how.nlayout = x.nbind;
    how.layout = x.bind;
    double last = 0;
    if (kind == 4) how.event_fn = clocked, how.event_user = &last;
    st = ein_dist_create(ctx, g, &how, &d);
    for (int again = 0; again < 2 && st == EIN_OK; again++) {
      forget(g, &x);
      CHECK(ein_dist_execute(d, kind == 4 ? NULL : &run, &stats) == EIN_OK);
      CHECK(kind == 4 || right(g, &x, exact ? want : NULL));
      CHECK(stats.seconds >= last && stats.seconds <= last);
    }
    if (st == EIN_OK) counted(g, s, d, &f, &stats), check_rooms(s, d, how.no_reuse);
    free(stats.place);
    ein_dist_destroy(d);
    ein_fabric_destroy(&f);
  }
  if (st == EIN_OK) processes_of(g, s, places);
  if (st == EIN_OK) blocks_of(g, s, places, &x, exact ? want : NULL);
  for (int k = 0; k < x.nout; k++) free(want[k]);
  tensors_free(&x);
  return st;
}

// Runs a schedule in which parts are computed first beside the plan of the graph without them: the
// same bits?
static int first_of(const ein_graph *g, const ein_schedule *s, int places) {
  tensors x;
  ein_run run;
  ein_plan *plan;
  ein_fabric f;
  ein_dist_desc how;
  ein_dist *d;
  void *want[TENSORS];
  tensors_of(g, &x, 0);
  memset(&run, 0, sizeof run);
  memset(&how, 0, sizeof how);
  run.in = x.in;
  run.out = want;
  for (int t = 0, k = 0; t < x.n; t++)
    if (g->tensor[t].role == EIN_ROLE_OUTPUT)
      want[k++] = orc_alloc(orc_count(&g->tensor[t]), orc_size(g->tensor[t].dtype));
  CHECK(ein_plan_graph(ctx, g, 0, NULL, NULL, &plan) == EIN_OK);
  CHECK(ein_plan_execute(plan, &run) == EIN_OK);
  CHECK(ein_fabric_copying(ctx, places, &f) == EIN_OK);
  how.fabric = &f;
  how.schedule = s;
  run.out = x.out;
  forget(g, &x);
  const int ran = ein_dist_create(ctx, g, &how, &d) == EIN_OK;  // of the graph without them
  if (ran) CHECK(ein_dist_execute(d, &run, NULL) == EIN_OK);
  const int same = ran && right(g, &x, want);
  if (ran && !same) {
    char text[2048];
    ein_graph_print(ein_schedule_graph(s), text, sizeof text);
    printf("other bits:\n%s", text);
    ein_schedule_print(s, text, sizeof text);
    printf("%s", text);
  }
  CHECK(same || !ran);
  ein_dist_destroy(d);
  ein_fabric_destroy(&f);
  ein_plan_destroy(plan);
  for (int k = 0; k < x.nout; k++) free(want[k]);
  tensors_free(&x);
  return same;
}

// ---- random statements under random schedules ---------------------------------------------------

static void test_random(int cases) {
  int ran = 0, exact = 0, shared = 0, kinds[sizeof statements / sizeof *statements] = {0};
  for (int c = 0; c < cases; c++) {
    char program[256], text[1024];
    int64_t e[3];
    const int places = (int)draw(1, 10);
    for (int i = 0; i < 3; i++) e[i] = chance(4) ? 0 : draw(1, 9);
    int which;
    const char *stmt = draw_program(program, sizeof program, e, &which);
    ein_program_desc desc;
    ein_graph *g, *fixed = NULL;
    memset(&desc, 0, sizeof desc);
    desc.text = program;
    const int none = e[0] * e[1] * e[2] == 0;  // then some mean nothing
    if (ein_graph_parse(ctx, &desc, &g) != EIN_OK) {
      if (!none) printf("%s\n%s\n", program, ein_ctx_message(ctx));
      CHECK(none);
      continue;
    }
    if (strchr(stmt, ';') == NULL)
      draw_nest(text, sizeof text, (int)draw(1, 3), (int)draw(1, 3));
    else draw_both(text, sizeof text, (int)draw(1, 3), (int)draw(1, 3));
    if (chance(40)) draw_place(text, sizeof text, statements[which].rank);
    ein_schedule_desc d;
    ein_schedule *s = NULL;
    memset(&d, 0, sizeof d);
    d.text = text;
    d.places = places;
    static const char *const loops[] = {"x", "v", "ii", "ji", "i", "j"};
    const size_t end = strlen(text);
    const int none_parallel = chance(40), first = (int)draw(0, 5);
    for (int k = 0; k < 6 && !none_parallel && s == NULL; k++) {  // the first loop that may be
      snprintf(text + end, sizeof text - end, "parallelize(%s)\n", loops[(first + k) % 6]);
      if (ein_schedule_create(ctx, g, &d, &s) != EIN_OK) text[end] = 0;
    }
    shared += s != NULL;
    ein_schedule_destroy(s);
    if (ein_schedule_create(ctx, g, &d, &s) == EIN_OK) {
      const ein_status st = run_of(g, s, places, 0);
      if (st != EIN_OK && st != EIN_ERR_UNSUPPORTED)
        printf("%s%s%s\n", program, text, ein_ctx_message(ctx));
      CHECK(st == EIN_OK || st == EIN_ERR_UNSUPPORTED);
      ran += st == EIN_OK;
      kinds[which] += st == EIN_OK;
      ein_schedule_destroy(s);
    }
    CHECK(ein_graph_deterministic(ctx, g, NULL, &fixed) == EIN_OK);
    if (ein_schedule_create(ctx, fixed, &d, &s) == EIN_OK) {
      exact += run_of(fixed, s, places, 1) == EIN_OK;
      ein_schedule_destroy(s);
    }
    ein_graph_destroy(fixed);
    ein_graph_destroy(g);
  }
  printf("%d of %d run, %d of them deterministic, %d with parallel loops\n", ran, cases, exact,
         shared);
  CHECK(4 * shared > cases);
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    if (kinds[k] == 0) printf("none of: %s\n", statements[k].stmt);
    CHECK(kinds[k] > 0 || cases < 300);
  }
  CHECK(2 * ran > cases && 8 * exact > cases);
}

static void test_runs(void) {
  static const char mm[] = "input A[m=%d,k=%d], B[k,n=%d]\nC[i,j] = A[i,k] * B[k,j]\n";
  static const struct { const char *name, *program; } runs[] = {
      {"cannon", mm}, {"pumma", mm}, {"summa", mm}, {"johnson", mm},
      {"solomonik", mm}, {"cosma", mm},
      {"ttv", "input B[m=%d,n=%d,o=%d], c[o]\nA[i,j] = B[i,j,k] * c[k]\n"},
      {"inner", "input B[m=%d,n=%d,o=%d], C[m,n,o]\na = sum[i,j,k](B[i,j,k] * C[i,j,k])\n"},
      {"ttm", "input B[m=%d,n=%d,o=%d], C[o,r=3]\nA[i,j,l] = B[i,j,k] * C[k,l]\n"},
      {"mttkrp", "input B[m=%d,n=%d,o=%d], C[n,r=3], D[o,r]\n"
                 "A[i,l] = B[i,j,k] * C[j,l] * D[k,l]\n"}};
  static const int places[] = {4, 1, 6, 9, 16, 27, 32};
  for (size_t k = 0; k < sizeof runs / sizeof *runs; k++) {
    for (int i = 0; i < 7; i++) {
      const int most = k < 6 ? 20 : 9;
      char text[160];
      snprintf(text, sizeof text, runs[k].program, (int)draw(1, most), (int)draw(1, most),
               (int)draw(1, most));
      ein_graph *g = parse(text);
      ein_schedule *s = schedule_of(g, read_file(runs[k].name), places[i]);
      CHECK(run_of(g, s, places[i], 0) == EIN_OK);
      ein_schedule_destroy(s);
      ein_graph_destroy(g);
    }
  }
}

// Several statements, folds and layouts; what is refused.
static void test_programs(void) {
  static const struct { const char *program, *schedule; int places; ein_status st; } cases[] = {
      {"input A[m=7,k=6], B[k,n=5], v[n]\nC[i,j] = sum[k](A[i,k] * B[k,j] + i - k)\n"
       "y[i] = max[j](C[i,j] - v[j])\nz = sum[i](y[i])\noutput y, z\n",
       "machine a=2, b=3\nplace A xy->x:2y:1\nplace B xy->*x\non C\n"
       "distribute([i,j],[io,jo],[ii,ji],[a,b])\nsplit(k,ko,ki,4); reorder(ko,ii,ji,ki)\n"
       "rotate(ko,[io,jo],t)\non y\ndivide(j,jo,ji,3); reorder(jo,i)\n"
       "divide(i,io,ii,2); reorder(io,jo)\ndistribute(io,jo)\non z\ndivide(i,io,ii,2)\n"
       "distribute(io)\n", 6, EIN_OK},
      {"input X[m=6,n=5,o=4], u[n], w[o]\nY[k,i] = logsumexp[j](X[i,j,k] * u[j])\n"
       "Z[i] = prod[k](Y[k,i] + w[k]*0.01)\noutput Y, Z\n",
       "machine p0=2, q=2\nplace X xyz->zx; place Y xy->x:1y\non Y\n"
       "divide(k,ko,ki,2); divide(i,io,ii,2); reorder(ko,io,ki,ii); distribute(ko,io)\n"
       "divide(j,jo,ji,3); reorder(jo,ki,ii); communicate(X,io); communicate(u,jo)\non Z\n"
       "divide(i,io,ii,2); divide(k,ko,ki,2); reorder(io,ko,ii,ki)\n"
       "distribute(io,ko)\n", 3, EIN_OK},
      {"input X[h=9], K[r=3]\nY[i=7] = X[i+r] * K[r]\n",
       "machine x=3\nplace X x->x\nplace K x->0\ndivide(i,io,ii,x)\ndistribute(io)\n", 3, EIN_OK},
      {"input X[m=6,n=6]\nY[i,j] = X[i,j] + X[j,i] * X[i,j]\n",
       "machine x=2,y=2\nplace X xy->xy\ndistribute([i,j],[a,b],[c,d],[x,y])\n"
       "split(c,e,f,1)\n", 4, EIN_OK},
      {"input X[m=6,n=6]\nY[i] = mean[j](X[i,j])\n", "machine x=2\n"
       "divide(i,a,b,2); distribute(a)\n", 2, EIN_OK},
      {"input X[m=6,n=6]\nY[i] = argmax[j](X[i,j])\nZ[i] : f32 = var[j](X[i,j])\noutput Y, Z",
       "machine x=2; place X xy->x; place Y x->x:1\non Y; split(i,a,b,2)\n"
       "distribute([b],[c],[d],[x])\nmachine z=2, y=2\non Z\n"
       "distribute([i],[a],[b],[y])\n", 4, EIN_OK},
      {"input X[m=6,n=6]\nY[i] = mean[j](X[i,j])\n", "machine x=2\n"
       "divide(j,a,b,2); reorder(a,i,b); distribute(a)\n", 2, EIN_OK},
      {"input X[m=6]\nY[2*i] = X[i]; Y[2*i+1] = X[i]\n", "machine x=2; place X x->x\n", 2,
       EIN_OK},
      {"input X[m=6,n=4]\nY[2*i,j] = X[i,j]; Y[2*i+1,j] = X[i,j] * j; Z[i,j] = Y[i,j] + Y[11-i,j]"
       "\nW[j,i] = Z[i,j]; W[j,i+12] = Y[i,3-j]\noutput W, Z", "machine x=3\nplace X xy->x\n"
       "on Y 2\ndistribute([i],[a],[b],[x])\non Z\nsplit(i,a,b,4); distribute(a)\n"
       "machine y=2, z=2\nplace W xy->xy:5; on W 2\ndistribute([i],[a],[b],[z])\n", 4, EIN_OK},
      {"input X[m=6]\nY[i] = X[i]\nZ[i] = Y[i] + Y[5-i]\noutput Y, Z", "machine x=2; place Y x->*\n"
       "place Z x->x\non Y; divide(i,a,b,2); distribute(a)\n", 2, EIN_OK},
      {"input X[m=6,n=6]\nY = mean[i,j](X[i,j])\nZ[j] = Y + X[0,j]\noutput Y, Z", "machine x=3,y=2;"
       "place Y ->**\non Y; distribute([i,j],[a,b],[c,d],[x,y])\non Z\n"
       "distribute([j],[b],[d],[x])", 4, EIN_OK},
      {"input A[m=70,k=9], B[k,n=11]\nC[i,j] = sum[k](A[i,k] * B[k,j] + i)\n",  // shared by threads
       "machine x=2; place B xy->*\ndistribute([i],[a],[b],[x])\nsplit(k,c,d,4)\n"
       "reorder(c,b,j,d); communicate(A,c); divide(b,e,f,5); parallelize(e)\n", 2, EIN_OK},
      {"input X[m=6,n=2]\nY[2*i+j] = X[i,j]\n", "machine x=2; place Y x->x\n", 2,
       EIN_ERR_UNSUPPORTED},
      {"input X[m=6]\nY[i] = X[i]\n", "machine x=2; split(i,a,b,3); divide(b,c,d,2)\n"
       "reorder(c,a); distribute(c)\n", 2, EIN_ERR_UNSUPPORTED}};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    ein_graph *g = parse(cases[k].program);
    ein_schedule *s = schedule_of(g, cases[k].schedule, cases[k].places);
    const ein_status st = run_of(g, s, cases[k].places, 0);
    if (st != cases[k].st) printf("%s%s%s\n", cases[k].program, cases[k].schedule,
                                  ein_ctx_message(ctx));
    CHECK(st == cases[k].st);
    ein_schedule_destroy(s);
    ein_graph_destroy(g);
  }
}

// Parts of expressions that are computed first: results are those of the oracle, and, where the
// graph fixes every order, the bits of the graph without them, or it is refused.
static void test_precompute(int cases) {
  static const struct { const char *stmt, *expr, *index; int axes, exact; } kinds[] = {
      {"sum[k](A[i,k] * B[k,j])", "A[i,k] * B[k,j]", "[i,k,j]", 3, 0},
      {"sum[k](A[i,k] * B[k,j])", "B[k,j]", "[j,k]", 2, 1},
      {"sum[k](exp(A[i,k] / 9) * B[k,j])", "exp(A[i,k] / 9)", "[i,k]", 2, 1},
      {"sum[k]((A[i,k] + B[k,j])^2 * 3)", "B[k,j] + A[i,k]", "[k,i,j]", 3, 1},
      {"sum[k]((A[i,k] - B[k,j])^2)", "(A[i,k] - B[k,j])^2", "[i,j,k]", 3, 0},
      {"max[k](A[i,k] * B[k,j] + i)", "A[i,k] * B[k,j]", "[i,j,k]", 3, 1},
      {"sum[k](A[i,k] * B[k,j] * A[i,0] * (j + 1))", "B[k,j] * A[i,0]", "[k,j,i]", 3, 0},
      {"A[i,0] * B[0,j] + A[i,0]*2", "A[i,0] * B[0,j]", "[i,j]", 2, 1},
      {"A[i,0] * B[0,j] + A[i,0]*2", "A[i,0]*2", "i", 1, 1},
      {"mean[k](A[i,k] - B[k,j])", "A[i,k]", "[i,k]", 2, 1},
      {"logsumexp[k](A[i,k] + B[k,j])", "A[i,k] + B[k,j]", "[i,j,k]", 3, 1},
      {"max[k](A[i,k] * B[k,j])", "B[k,j] * A[i,k]", "[i,k,j]", 3, 1},
      {"argmax[k](A[i,k] * B[k,j])", "A[i,k] * B[k,j]", "[i,k,j]", 3, 1}};
  static const char *const types[] = {"f64", "f32", "bf16", "f16", "i32", "i8", "c64"};
  static const char *const axes[] = {"a", "[a,b]", "[a,b,c]"};
  int ran = 0, exact = 0;
  for (int c = 0; c < cases; c++) {
    const int k = c % (int)(sizeof kinds / sizeof *kinds), places = (int)draw(1, 6);
    char program[256], text[1024];
    ein_program_desc desc;
    ein_schedule_desc d;
    ein_schedule *s = NULL;
    ein_graph *g, *fixed;
    const int most = chance(10) ? 70 : 8;
    snprintf(program, sizeof program, "input A[m=%d,k=%d], B[k,n=%d] : %s\nC[i,j] = %s\n",
             (int)draw(1, most), (int)draw(1, 8 * most), (int)draw(1, most), types[draw(0, 6)],
             kinds[k].stmt);
    memset(&desc, 0, sizeof desc);
    memset(&d, 0, sizeof d);
    desc.text = program;
    if (ein_graph_parse(ctx, &desc, &g) != EIN_OK) continue;  // of complex numbers there is no max
    int at = snprintf(text, sizeof text, "machine x=%d, y=%d; place A,B xy->x*\n"
                      "precompute(%s, %s, %s, W)\n", (int)draw(1, 2), (int)draw(1, 3),
                      kinds[k].expr, kinds[k].index, axes[kinds[k].axes - 1]);
    if (chance(70))
      at += snprintf(text + at, sizeof text - (size_t)at,
                     "on W; distribute([a], [p0], [p1], [%c])\n", "xy"[draw(0, 1)]);
    if (chance(70))
      snprintf(text + at, sizeof text - (size_t)at,
               "on C; distribute([i, j], [p, q], [r, s], [x, y]); split(r, u, v, 3)\n");
    d.text = text;
    d.places = places;
    if (ein_schedule_create(ctx, g, &d, &s) != EIN_OK)
      printf("%s%s%s\n", program, text, ein_ctx_message(ctx));
    CHECK(s != NULL);
    ran += s != NULL && run_of(ein_schedule_graph(s), s, places, 0) == EIN_OK;
    ein_schedule_destroy(s);
    CHECK(ein_graph_deterministic(ctx, g, NULL, &fixed) == EIN_OK);
    if (ein_schedule_create(ctx, fixed, &d, &s) == EIN_OK)
      exact += first_of(fixed, s, places);
    else {
      const int alone = kinds[k].exact && ein_graph_statements(fixed) == 1;  // else as planned
      if (alone) printf("%s%s%s\n", program, text, ein_ctx_message(ctx));
      CHECK(!alone);
    }
    ein_schedule_destroy(s);
    ein_graph_destroy(fixed);
    ein_graph_destroy(g);
  }
  printf("%d of %d with what is computed first, %d deterministic\n", ran, cases, exact);
  CHECK(4 * ran > 3 * cases && 3 * exact > cases);
}

// ---- decompositions as schedules ----------------------------------------------------------------

static const char *const cut_programs[] = {
    "input A[m=%d,k=%d], B[k,n=%d], v[n]\nC[i,j] = sum[k](A[i,k] * B[k,j] + i - k)\n"
    "y[i] = max[j](C[i,j] - v[j])\nz = sum[i](y[i])\noutput y, z\n",
    "input Q[s=%d,d=%d], K[t=%d,d], V[t,d]\nT[s,t] = sum[d](Q[s,d]*K[t,d]) / sqrt(size(d))\n"
    "Y[s,d] = sum[t](softmax[t](T[s,t]) * V[t,d])\n",
    "input X[io=%d,i=%d], W[i,ii=%d]\nH[io,ii] = relu(sum[i](X[io,i] * W[i,ii]))\n"
    "Z[ii,i] = sum[io](H[io,ii] * X[io,i])\noutput Z\n",
    "input A[m=%d,n=%d], b[q=%d]\nM[m] = mean[n](A[m,n])\nD[m,n] = A[m,n] - M[m]\n"
    "Y[m,n,q] = D[m,n] * b[q] + D[m,n]\noutput Y\n"};

// What an optimiser cuts is the same as a text: the bytes and messages of every statement, and the
// results.
static void test_written(int cases) {
  static const char *const methods[] = {"eindecomp", "linear", "sqrt", "none"};
  static char text[1 << 14], pin[64];
  int ran = 0, moved = 0;
  for (int c = 0; c < cases; c++) {
    char program[512];
    const char *pins[1] = {pin};
    const int which = (int)draw(0, 3), places = (int)draw(1, 13), e[3] = {
        (int)draw(1, 12), (int)draw(1, 12), (int)draw(1, 12)};
    snprintf(program, sizeof program, cut_programs[which], e[0], e[1], e[2]);
    ein_graph *g = parse(program);
    ein_decompose_desc how;
    ein_decomposition *d;
    memset(&how, 0, sizeof how);
    how.p = places;
    how.method = methods[draw(0, 3)];
    how.cost = chance(50) ? EIN_COST_BYTES : EIN_COST_SECONDS;
    const int64_t cut = draw(1, eini_min64(places, e[0]));
    snprintf(pin, sizeof pin, "%s[0=%d]", g->tensor[0].name, (int)cut);
    if (chance(40)) how.pin = pins, how.npin = 1;
    CHECK(ein_decompose(ctx, g, &how, &d) == EIN_OK);
    const size_t n = ein_decomposition_schedule(g, d, text, sizeof text);
    CHECK(n < sizeof text && n == ein_decomposition_schedule(g, d, NULL, 0));
    ein_schedule *s = schedule_of(g, text, places);
    ein_dist_desc run;
    ein_fabric f;
    ein_dist *as = NULL;
    memset(&run, 0, sizeof run);
    run.fabric = &f;
    run.decomposition = d;
    CHECK(ein_fabric_copying(ctx, places, &f) == EIN_OK);
    CHECK(ein_dist_create(ctx, g, &run, &as) == EIN_OK);
    for (int k = 0; k < ein_graph_statements(g); k++) {
      ein_schedule_info each;
      CHECK(ein_schedule_cost(ctx, s, k, NULL, NULL, &each) == EIN_OK);
      if (ein_dist_bytes(as, k) != each.bytes)
        printf("%s%sstatement %d moves %lld, not %lld\n", program, text, k, (long long)each.bytes,
               (long long)ein_dist_bytes(as, k));
      CHECK(ein_dist_bytes(as, k) == each.bytes);
      moved += each.bytes > 0;
    }
    ein_dist *steps = NULL;  // keeps a result apart from where it is made, too
    run.decomposition = NULL;
    run.schedule = s;
    CHECK(ein_dist_create(ctx, g, &run, &steps) == EIN_OK);
    for (int q = 0; q < places; q++) {
      const int64_t more = ein_dist_peak(steps, q) - ein_dist_peak(as, q);
      CHECK(more >= 0 && more <= 3 * 8 * 12 * 12 * 12);
    }
    ein_dist_destroy(steps);
    ein_dist_destroy(as);
    ein_fabric_destroy(&f);
    const ein_status st = run_of(g, s, places, 0);
    CHECK(st == EIN_OK);
    ran += st == EIN_OK;
    ein_schedule_destroy(s);
    ein_decomposition_destroy(d);
    ein_graph_destroy(g);
  }
  printf("%d of %d decompositions run as schedules, %d statements move\n", ran, cases, moved);
  CHECK(4 * ran > 3 * cases && 2 * moved > cases);
}

// ---- events and memory --------------------------------------------------------------------------

typedef struct told {
  int count[4], left, step[8];  // step: by place
} told;

static ein_status tell(void *user, const ein_dist_event *e) {
  told *t = (told *)user;
  t->count[e->level + 3]++;
  if (e->step < t->step[e->place]) t->count[3]++;
  t->step[e->place] = (int)e->step;
  return --t->left == 0 ? EIN_ERR_BOUNDS : EIN_OK;
}

// Cannon on four places: a place holds its tile of A and B, and of C, which it makes apart and
// merges a block into, and has rooms for a tile of A and of B, the largest that it computes with:
// what it has itself is copied there, too. Of 7 rows tiles have 3 or 4.
static void test_peaks(void) {
  for (int m = 7; m <= 8; m++) {
    char text[128];
    snprintf(text, sizeof text, "input A[m=%d,k=%d], B[k,n=%d]\nC[i,j] = A[i,k] * B[k,j]\n", m, m,
             m);
    ein_graph *g = parse(text);
    ein_schedule *s = schedule_of(g, read_file("cannon"), 4);
    ein_dist_desc how;
    ein_dist *d;
    ein_fabric f;
    double most[4];
    memset(&how, 0, sizeof how);
    how.fabric = &f;
    how.schedule = s;
    CHECK(ein_schedule_peaks(ctx, s, EIN_INPUTS_HELD, NULL, most) == EIN_OK);
    for (int shared = 0; shared < 2; shared++) {
      CHECK((shared ? ein_fabric_serial(4, &f) : ein_fabric_copying(ctx, 4, &f)) == EIN_OK);
      CHECK(ein_dist_create(ctx, g, &how, &d) == EIN_OK);
      for (int q = 0; q < 4; q++) {
        const int i = q / 2 == 0 ? m / 2 : 4, j = q % 2 == 0 ? m / 2 : 4;
        const int want = 8 * (2 * i * j + 3 * i * j + 4 * i + 4 * j);
        CHECK(ein_dist_peak(d, q) == want && (int)most[q] == want);
      }
      ein_dist_info info;
      CHECK(ein_dist_info_get(d, &info) == EIN_OK && info.peak_bytes > 0);
      CHECK(shared ? info.place_bytes == 0 : info.place_bytes >= info.peak_bytes);
      const double peak = (double)info.peak_bytes;
      ein_dist_destroy(d);
      for (int less = 0; less < 2; less++) {  // the machine's memory is a limit
        ein_schedule *limited;
        ein_schedule_desc desc;
        ein_machine machine;
        memset(&desc, 0, sizeof desc);
        memset(&machine, 0, sizeof machine);
        machine.memory = peak - less;
        desc.machine = &machine;
        desc.text = read_file("cannon");
        desc.places = 4;
        CHECK(ein_schedule_create(ctx, g, &desc, &limited) == EIN_OK);
        how.schedule = limited;
        CHECK(ein_dist_create(ctx, g, &how, &d) == (less ? EIN_ERR_TOO_LARGE : EIN_OK));
        CHECK(!less || strstr(ein_ctx_message(ctx), "bytes alive") != NULL);
        ein_dist_destroy(d);
        ein_schedule_destroy(limited);
        how.schedule = s;
      }
      ein_fabric_destroy(&f);
    }
    ein_schedule_destroy(s);
    ein_graph_destroy(g);
  }
}

// Of the same the two on the diagonal fetch both operands in one step, the others one in each.
static void test_events(void) {
  static double a[64], b[64], c[64];
  ein_graph *g = parse("input A[m=8,k=8], B[k,n=8]\nC[i,j] = A[i,k] * B[k,j]\n");
  ein_schedule *s = schedule_of(g, read_file("cannon"), 4);
  const void *in[2] = {a, b};
  void *out[1] = {c};
  ein_dist_desc how;
  ein_dist *d;
  ein_fabric f;
  ein_run run;
  told t;
  memset(&how, 0, sizeof how);
  memset(&run, 0, sizeof run);
  run.in = in;
  run.out = out;
  CHECK(ein_fabric_copying(ctx, 4, &f) == EIN_OK);
  how.fabric = &f;
  how.schedule = s;
  how.event_fn = tell;
  how.event_user = &t;
  CHECK(ein_dist_create(ctx, g, &how, &d) == EIN_OK);
  memset(&t, 0, sizeof t);
  CHECK(ein_dist_execute(d, &run, NULL) == EIN_OK);
  CHECK(t.count[0] == 0 && t.count[1] == 6 && t.count[2] == 8 && t.count[3] == 0);
  for (int q = 0; q < 4; q++) CHECK(t.step[q] == 1);
  for (int n = 1; n <= 14; n++) {
    memset(&t, 0, sizeof t);
    t.left = n;
    CHECK(ein_dist_execute(d, &run, NULL) == EIN_ERR_BOUNDS);
  }
  ein_dist_destroy(d);
  ein_fabric_destroy(&f);
  ein_schedule_destroy(s);
  ein_graph_destroy(g);
}

// ---- failures -----------------------------------------------------------------------------------

typedef struct refusal {
  ein_dist_event at;
  int found;
} refusal;

// The events are called by several threads: one of them alone is this.
static ein_status refuse(void *user, const ein_dist_event *e) {
  refusal *r = (refusal *)user;
  if (e->stmt != r->at.stmt || e->place != r->at.place || e->level != r->at.level ||
      e->step != r->at.step)
    return EIN_OK;
  r->found = 1;
  return EIN_ERR_BOUNDS;
}

// A message that waits for its other end.
static int left_over(const ein_fabric *f) {
  int n = 0;
  if (f->shared) return 0;
  const eini_posts *posts = (const eini_posts *)f->user;
  for (int64_t i = 0; i < posts->cap; i++) n += posts->head[i] != 0;
  return n;
}

// What fails at one place, at one of its blocks, fetches or sends, ends the run with its status, no
// message is left, and the next run is right.
static void test_failures(void) {
  static double a[24 * 24], b[24 * 24], c[24 * 24], want[24 * 24];
  ein_graph *g = parse("input A[m=24,k=24], B[k,n=24]\nC[i,j] = A[i,k] * B[k,j]\n"
                       "D[i,j] = C[j,i] + 1\n");
  ein_schedule *s = schedule_of(g, "machine x=2, y=2\nplace A, B, C, D xy->xy\non C\n"
                                "distribute([i,k],[io,ko],[ii,ki],[x,y])\ndivide(ki,kio,kii,3)\n"
                                "reorder(kio,ii,j,kii)\ncommunicate([A,B],kio)\non D\n"
                                "distribute([i,j],[io,jo],[ii,ji],[x,y])\n", 4);
  const void *in[2] = {a, b};
  void *out[1] = {c};
  int hit[3] = {0};
  ein_run run;
  memset(&run, 0, sizeof run);
  run.in = in;
  run.out = out;
  for (int i = 0; i < 24 * 24; i++) a[i] = i % 7, b[i] = i % 5;
  for (int kind = 0; kind < 4; kind++) {
    ein_dist_desc how;
    ein_dist *d;
    ein_fabric f;
    refusal r;
    CHECK((kind < 2 ? ein_fabric_serial(4, &f) : ein_fabric_copying(ctx, 4, &f)) == EIN_OK);
    f.threads = kind % 2;
    memset(&how, 0, sizeof how);
    memset(&r, 0, sizeof r);
    how.fabric = &f;
    how.schedule = s;
    how.event_fn = refuse;
    how.event_user = &r;
    CHECK(ein_dist_create(ctx, g, &how, &d) == EIN_OK);
    for (int n = 0; n < 2 * 4 * 3 * 3; n++) {
      r.at.stmt = n % 2, r.at.place = n / 2 % 4, r.at.step = n / 8 % 3, r.at.level = n / 24 - 3;
      r.found = 0;
      const ein_status st = ein_dist_execute(d, &run, NULL);
      CHECK(st == (r.found ? EIN_ERR_BOUNDS : EIN_OK) && left_over(&f) == 0);
      hit[n / 24] += r.found;
      r.at.place = -1;
      memset(c, 0, sizeof c);
      CHECK(ein_dist_execute(d, &run, NULL) == EIN_OK && left_over(&f) == 0);
      if (kind == 0 && n == 0) memcpy(want, c, sizeof c);
      CHECK(memcmp(want, c, sizeof c) == 0);
    }
    ein_dist_destroy(d);
    ein_fabric_destroy(&f);
  }
  CHECK(hit[0] > 4 && hit[1] > 20 && hit[2] > 60);
  ein_schedule_destroy(s);
  ein_graph_destroy(g);
}

// The iterations of a parallel loop are tasks of their own under threads, and only there.
static void test_shares(void) {
  static double a[70 * 9], b[9 * 11], c[70 * 11];
  ein_graph *g = parse("input A[m=70,k=9], B[k,n=11]\nC[i,j] = sum[k](A[i,k] * B[k,j])\n");
  ein_schedule *s = schedule_of(g, "machine x=2\ndistribute([i],[a],[b],[x])\nsplit(k,c,d,4)\n"
                                "reorder(c,b,j,d); communicate(A,c); divide(b,e,f,5)\n"
                                "parallelize(e)\n", 2);
  for (int threads = 0; threads < 2; threads++) {
    const void *in[2] = {a, b};
    void *out[1] = {c};
    ein_dist_desc how;
    ein_dist *d;
    ein_fabric f;
    ein_run run;
    told t;
    memset(&how, 0, sizeof how);
    memset(&run, 0, sizeof run);
    memset(&t, 0, sizeof t);
    run.in = in;
    run.out = out;
    CHECK((threads ? ein_fabric_threads(2, &f) : ein_fabric_serial(2, &f)) == EIN_OK);
    how.fabric = &f;
    how.schedule = s;
    how.event_fn = tell;
    how.event_user = &t;
    CHECK(ein_dist_create(ctx, g, &how, &d) == EIN_OK);
    CHECK(ein_dist_execute(d, &run, NULL) == EIN_OK);
    CHECK(t.count[2] == (threads ? 2 * 3 * 5 : 2 * 3) && t.count[0] + t.count[1] == 0);
    t.left = 9;
    CHECK(ein_dist_execute(d, &run, NULL) == (threads ? EIN_ERR_BOUNDS : EIN_OK));
    ein_dist_destroy(d);
    ein_fabric_destroy(&f);
  }
  ein_schedule_destroy(s);
  ein_graph_destroy(g);
}

// ---- models -------------------------------------------------------------------------------------

typedef struct sized {
  const char *name;
  int nsize;
  ein_size size[6];
} sized;

static const sized models[] = {
    {"llama_layer", 5, {{"s", 12}, {"a", 16}, {"h", 4}, {"d", 6}, {"f", 20}}},
    {"attention", 4, {{"s", 12}, {"d", 6}, {"t", 10}, {"e", 5}}},
    {"mha", 4, {{"s", 12}, {"a", 16}, {"h", 4}, {"d", 6}}},
    {"softmax", 2, {{"s", 12}, {"t", 10}}},
    {"chain", 5, {{"i", 8}, {"j", 9}, {"k", 6}, {"l", 7}, {"m", 5}}},
    {"training", 4, {{"b", 8}, {"a", 16}, {"f", 20}, {"c", 7}}}};

static ein_graph *read_model(const sized *m) {
  static char text[1 << 13];
  char path[256];
  ein_program_desc d;
  ein_graph *g = NULL;
  snprintf(path, sizeof path, "examples/models/%s.ein", m->name);
  FILE *f = fopen(path, "rb");
  text[f == NULL ? 0 : fread(text, 1, sizeof text - 1, f)] = 0;
  if (f != NULL) fclose(f);
  memset(&d, 0, sizeof d);
  d.text = text;
  d.nsize = m->nsize;
  d.size = m->size;
  if (ein_graph_parse(ctx, &d, &g) != EIN_OK) printf("%s: %s\n", m->name, ein_ctx_message(ctx));
  CHECK(g != NULL);
  return g;
}

// Runs a graph on places that copy: outputs, one behind another, as bytes.
static char *outputs_of(const ein_graph *g, const ein_dist_desc *how, size_t *bytes) {
  const void *in[16];
  void *out[16];
  ein_dist *d = NULL;
  ein_run run;
  int nin = 0, nout = 0;
  *bytes = 0;
  for (int t = 0; t < g->ntensor; t++)
    if (g->tensor[t].role == EIN_ROLE_OUTPUT)
      *bytes += (size_t)orc_count(&g->tensor[t]) * orc_size(g->tensor[t].dtype);
  char *all = (char *)orc_alloc((int64_t)*bytes, 1), *at = all;
  for (int t = 0; t < g->ntensor; t++) {
    const ein_dtype type = g->tensor[t].dtype;
    const int64_t n = orc_count(&g->tensor[t]);
    if (g->tensor[t].role == EIN_ROLE_INPUT) {
      double *x = (double *)orc_alloc(n, sizeof(double));  // small, so that nothing overflows
      rng_state = (uint64_t)t + 3;
      for (int64_t i = 0; i < n; i++) {
        const double v = (double)draw(-100, 100) / 128;
        if (type == EIN_F32) ((float *)x)[i] = (float)v;
        else x[i] = v;
      }
      in[nin++] = x;
    }
    if (g->tensor[t].role != EIN_ROLE_OUTPUT) continue;
    out[nout++] = at;
    at += (size_t)n * orc_size(type);
  }
  memset(&run, 0, sizeof run);
  run.in = in;
  run.out = out;
  const ein_status st = ein_dist_create(ctx, g, how, &d);
  if (st != EIN_OK) printf("%s\n", ein_ctx_message(ctx));
  CHECK(st == EIN_OK && ein_dist_execute(d, &run, NULL) == EIN_OK);
  ein_dist_destroy(d);
  while (nin > 0) free((void *)(uintptr_t)in[--nin]);
  return all;
}

// Are outputs the same, up to rounding?
static int near_enough(const ein_graph *g, const char *a, const char *b) {
  int good = 1;
  for (int t = 0; t < g->ntensor; t++) {
    if (g->tensor[t].role != EIN_ROLE_OUTPUT) continue;
    const int64_t n = orc_count(&g->tensor[t]);
    const int narrow = g->tensor[t].dtype == EIN_F32;
    double most = 0;
    for (int pass = 0; pass < 2; pass++) {
      for (int64_t i = 0; i < n; i++) {
        const double x = narrow ? (double)((const float *)(const void *)a)[i]
                                : ((const double *)(const void *)a)[i];
        const double y = narrow ? (double)((const float *)(const void *)b)[i]
                                : ((const double *)(const void *)b)[i];
        if (pass == 0) most = x > most ? x : -x > most ? -x : most;
        else good &= x - y <= 1e-4 * most && y - x <= 1e-4 * most;
      }
    }
    a += (size_t)n * orc_size(g->tensor[t].dtype);
    b += (size_t)n * orc_size(g->tensor[t].dtype);
  }
  return good;
}

// Models under the schedule that their decomposition is written as: where no fold is cut, its bits.
static void test_models(void) {
  static const char *const methods[] = {"eindecomp", "sequence", "sqrt", "attention"};
  static char text[1 << 16];
  int same = 0, scattered = 0, factored = 0;
  for (int c = 0; c < 6 * 4 * 3; c++) {
    static const int places[] = {2, 4, 6};
    const char *model = models[c % 6].name, *method = methods[c / 6 % 4];
    ein_graph *g = read_model(&models[c % 6]);
    ein_decompose_desc how;
    ein_decomposition *d;
    ein_dist_desc as;
    ein_fabric f;
    size_t bytes;
    int cut = 0;
    memset(&how, 0, sizeof how);
    how.p = places[c / 24];
    how.method = method;
    how.cost = EIN_COST_BYTES;
    if (ein_decompose(ctx, g, &how, &d) != EIN_OK) {  // it has no such index
      ein_graph_destroy(g);
      continue;
    }
    const ein_graph *own = ein_decomposition_graph(d), *of = own != NULL ? own : g;
    const ein_graph *from = scattered % 2 == 0 ? g : of;  // g: rfactor(..) scatters results
    CHECK(ein_decomposition_schedule(from, d, text, sizeof text) < sizeof text);
    CHECK((strstr(text, "rfactor(") != NULL) == (from != of));
    for (int k = 0; k < ein_graph_statements(of); k++) {
      ein_parts p;
      CHECK(ein_decomposition_parts(d, k, &p) == EIN_OK);
      for (int i = of->stmt[k].nfree; i < p.nindex; i++) cut |= p.cut[i] > 1;
    }
    memset(&as, 0, sizeof as);
    CHECK(ein_fabric_copying(ctx, (int)how.p, &f) == EIN_OK);
    as.fabric = &f;
    as.decomposition = d;
    char *cuts = outputs_of(g, &as, &bytes);
    as.decomposition = NULL;
    ein_schedule *s = schedule_of(from, text, how.p);
    as.schedule = s;
    char *steps = outputs_of(from, &as, &bytes);
    scattered += own != NULL;
    factored += from != of;
    const int equal = memcmp(cuts, steps, bytes) == 0;
    if (!cut && !equal) printf("%s %s %d: other bits\n", model, method, (int)how.p);
    CHECK(equal || (cut && near_enough(g, cuts, steps)));
    same += equal;
    free(cuts);
    free(steps);
    ein_schedule_destroy(s);
    ein_decomposition_destroy(d);
    ein_fabric_destroy(&f);
    ein_graph_destroy(g);
  }
  printf("%d models have the bits of their decompositions, %d with scattered results\n", same,
         scattered);
  CHECK(scattered > 0 && factored > 0);
  CHECK(same > 20);
}

// Every allocation fails once.
static void test_memory(void) {
  static double a[64], b[64], c[128];
  static const struct { const char *program, *schedule; } cases[] = {
      {"input A[m=8,k=8], B[k,n=8]\nC[i,j] = A[i,k] * B[k,j]\n", NULL},
      {"input A[m=8,k=8], B[k,n=8]\nD[2*i,j] = mean[k](A[i,k] * B[k,j])\n"
       "D[2*i+1,j] = A[i,j]\nC[i,j] = D[i+j,j]\n",
       "machine x=2, y=4; place A xy->x*; place C xy->yx\non D 1\n"
       "distribute([i,k],[a,b],[c,d],[x,y])\non C; distribute([i],[a],[b],[x])\n"}};
  for (long n = 0, k = 0; k < 2; n += 1 + n / 64) {
    ein_graph *g = parse(cases[k].program);
    ein_schedule *s = schedule_of(g, k == 0 ? read_file("johnson") : cases[k].schedule, 8);
    counter count = {0, -1, 0};
    const void *in[2] = {a, b};
    void *out[1] = {c};
    ein_ctx_desc how;
    ein_dist_desc places;
    ein_dist *d = NULL;
    ein_ctx *own;
    ein_fabric f;
    ein_run run;
    memset(&how, 0, sizeof how);
    memset(&run, 0, sizeof run);
    memset(&places, 0, sizeof places);
    memset(&f, 0, sizeof f);
    run.in = in;
    run.out = out;
    how.allocator.alloc_fn = count_alloc;
    how.allocator.free_fn = count_free;
    how.allocator.user = &count;
    CHECK(ein_ctx_create(&how, &own) == EIN_OK);
    count.fail_at = count.calls + n;
    ein_status st = ein_fabric_copying(own, 8, &f);
    places.fabric = &f;
    places.schedule = s;
    if (st == EIN_OK) st = ein_dist_create(own, g, &places, &d);
    if (st == EIN_OK) st = ein_dist_execute(d, &run, NULL);
    CHECK(st == EIN_OK || st == EIN_ERR_NO_MEMORY);
    CHECK(st != EIN_OK || n > 20);
    ein_dist_destroy(d);
    ein_fabric_destroy(&f);
    ein_ctx_destroy(own);
    CHECK(count.live == 0);
    ein_schedule_destroy(s);
    ein_graph_destroy(g);
    if (st == EIN_OK) n = -1, k++;
  }
}

// ---- seconds ----

static ein_status tasks_of(void *user, const ein_dist_event *e) {
  double *end = (double *)user;
  if (e->level == -1) end[2 * e->step + e->place] = e->end;
  return EIN_OK;
}

// Seconds of a schedule of two places, and when each of them is done with each step.
static double seconds_of(const ein_graph *g, const char *text, const ein_machine *m, double *end) {
  ein_schedule_desc d;
  ein_schedule *s;
  ein_fabric f;
  ein_dist_desc how;
  ein_dist *as;
  ein_dist_stats stats;
  memset(&d, 0, sizeof d), memset(&how, 0, sizeof how), memset(&stats, 0, sizeof stats);
  d.places = 2;
  d.machine = m;
  d.text = text;
  CHECK(ein_schedule_create(ctx, g, &d, &s) == EIN_OK);
  CHECK(ein_fabric_sim(ctx, 2, m, &f) == EIN_OK);
  how.fabric = &f;
  how.schedule = s;
  how.event_fn = tasks_of;
  how.event_user = end;
  CHECK(ein_dist_create(ctx, g, &how, &as) == EIN_OK);
  CHECK(ein_dist_execute(as, NULL, &stats) == EIN_OK);
  ein_dist_destroy(as);
  ein_fabric_destroy(&f);
  ein_schedule_destroy(s);
  return stats.seconds;
}

// What a step needs moves while the one before is computed, and has the memory of that two steps
// before. A message of n bytes takes 2 + n / 8 seconds, a task 1.
static void test_seconds(void) {
  ein_machine m;
  double end[8];
  memset(&m, 0, sizeof m);
  m.flops = m.memory_bw = 1e30;
  m.latency = 2;
  m.bandwidth = 8;
  m.overhead = 1;
  ein_graph *g = parse("input X[m=8]\nY[i] = X[i] * 2\n");
  double s = seconds_of(g, "machine x=2; place X x->0\ndistribute([i],[a],[b],[x])\n"
                           "split(b,c,e,2)\n", &m, end);
  CHECK(end[0] == 1 && end[2] == 2 && end[1] == 2 + 2 + 1 && end[3] == 2 + 2 + 2 + 1 && s == 7);
  s = seconds_of(g, "machine x=2; place X x->0\ndistribute([i],[a],[b],[x])\nsplit(b,c,e,1)\n", &m,
                 end);
  CHECK(end[1] == 0 + 3 + 1 && end[3] == 1 + 3 + 1);           // behind the first message
  CHECK(end[5] == end[1] + 3 + 1 && end[7] == end[3] + 3 + 1);  // into its memory
  CHECK(s == 9);
  s = seconds_of(g, "machine x=2; place X x->x; place Y x->0\ndistribute([i],[a],[b],[x])\n", &m,
                 end);
  CHECK(s == 1 + 2 + 4);  // computes, and sends it home
  ein_graph_destroy(g);
}

// Tasks of an executor, the last one first: a schedule may not depend on their order; or on
// threads, each fourth time.
static void backwards(int n, void (*task)(void *arg, int i), void *arg, void *user) {
  int *calls = (int *)user;
  if (++*calls % 4 == 0) test_for(n, task, arg, NULL);
  else while (n > 0) task(arg, --n);
}

int main(int argc, char **argv) {
  const int cases = argc > 1 ? atoi(argv[1]) : FEW(300);
  int calls = 0;
  ein_ctx_desc how;
  memset(&how, 0, sizeof how);
  how.executor.width = 3;
  how.executor.parallel_for = backwards;
  how.executor.user = &calls;
  rng_state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  printf("seed %llu\n", (unsigned long long)rng_state);
  CHECK(ein_ctx_create(&how, &ctx) == EIN_OK);
  monoids_add(ctx);
  test_runs();
  test_programs();
  test_random(cases);
  test_precompute(cases);
  test_written(cases);
  test_models();
  test_peaks();
  test_events();
  test_failures();
  test_shares();
  test_seconds();
  test_memory();
  ein_ctx_destroy(ctx);
  printf("%d runs with nothing bound but blocks\n", runs_in_blocks);
  CHECK(runs_in_blocks > cases / 4);
  printf("%s %d checks\n", failures ? "FAIL" : "ok", checks);
  return failures != 0;
}
