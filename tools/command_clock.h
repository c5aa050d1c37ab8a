// SPDX-License-Identifier: MIT
//
// command_clock.h - `einsum run --fabric sim`: a run on a clock, without data.
// A part of einsum.c, which includes it once, in its place; it uses what stands above that place.

// What such a run did.
typedef struct clocked {
  ein_dist_stats stats;
  ein_dist_info info;
  ein_sim_stmt *each;       // of statements: start, end and busy
  // Draws an event, with `drawn`; NULL: nobody asks.
  void (*draw_fn)(void *drawn, const ein_dist_event *event);
  void *drawn;
  int progress;             // tasks are what is shown
} clocked;

// What is printed of a simulated run.
typedef struct simulation {
  const ein_decomposition *d;  // NULL: it goes by a schedule
  const clocked *clock;     // NULL: it was not followed one by one
  const char *why;          //   and a schedule's has a reason
  int64_t places;
  ein_sim_info sim;
  ein_sim_stmt *each;
  const char *machine;
} simulation;

// Tasks and messages that are followed one by one.
#define CLOCK_MOST 2e6

static ein_status clock_event(void *user, const ein_dist_event *e) {
  const clocked *c = (const clocked *)user;
  ein_sim_stmt *x = &c->each[e->stmt];
  if (c->draw_fn != NULL) c->draw_fn(c->drawn, e);
  if (e->level < -1) return EIN_OK;
  x->start = fmin(x->start, e->begin);
  x->end = fmax(x->end, e->end);
  x->busy += e->end - e->begin;
  if (c->progress) progress_step();
  return EIN_OK;
}

// Runs a decomposition, or what a schedule says, of a graph on a clock of that machine.
static ein_status clock_run(ein_ctx *ctx, const ein_graph *g, const ein_decomposition *d,
                            const ein_schedule *s, const ein_decompose_desc *desc, clocked *c) {
  ein_fabric f;
  ein_dist_desc how;
  ein_dist *made;
  const int n = (int)ein_graph_statements(g);
  c->each = (ein_sim_stmt *)memory(sizeof *c->each * ((size_t)n + 1));
  for (int i = 0; i < n; i++) c->each[i].start = INFINITY;
  memset(&c->stats, 0, sizeof c->stats);
  c->stats.nplace = desc->p;
  c->stats.place = (ein_place_stats *)memory(sizeof *c->stats.place * ((size_t)desc->p + 1));
  memset(&how, 0, sizeof how);
  ein_status st = ein_fabric_sim(ctx, (int)desc->p, desc->machine, &f);
  if (st != EIN_OK) return st;
  how.fabric = &f;
  how.decomposition = d;
  how.schedule = s;
  how.inputs = desc->inputs;
  how.event_fn = clock_event;
  how.event_user = c;
  st = ein_dist_create(ctx, g, &how, &made);
  if (st == EIN_OK) (void)ein_dist_info_get(made, &c->info);
  if (st == EIN_OK) st = ein_dist_execute(made, NULL, &c->stats);
  ein_dist_destroy(made);
  ein_fabric_destroy(&f);
  return st;
}

// Seconds that places compute, summed.
static double clock_busy(const clocked *c) {
  double busy = 0;
  for (int64_t q = 0; q < c->stats.nplace; q++) busy += c->stats.place[q].busy;
  return busy;
}

static void clock_draw(void *drawn, const ein_dist_event *e) {
  picture *p = (picture *)drawn;
  if (e->level >= -1)
    picture_work(p, &p->place, e->stmt, e->place, e->begin, e->end, e->level >= 0);
}

// What a simulation of a decomposition says of time becomes what the executor does, where that is
// not too much; picture: NULL, or its time line does, too.
static void clock_decomposed(const program *p, const ein_decompose_desc *desc, simulation *x,
                             clocked *c, picture *drawn) {
  ein_decomp_info info;
  if (x->sim.tasks + x->sim.messages > CLOCK_MOST) return;
  memset(c, 0, sizeof *c);
  c->progress = 1;
  if (drawn != NULL) {
    drawn->place.n = drawn->place.dropped = 0;
    c->draw_fn = clock_draw;
    c->drawn = drawn;
  }
  progress_begin("simulating", "tasks", x->sim.tasks);
  const ein_status st = clock_run(p->ctx, p->graph, x->d, NULL, desc, c);
  progress_end();
  if (st != EIN_OK) die_library(p->ctx, st, p->file);
  ein_decomposition_info(x->d, &info);
  for (int i = 0; i < info.nstmt; i++) {
    x->each[i].start = c->each[i].start;
    x->each[i].end = c->each[i].end;
    x->each[i].busy = c->each[i].busy;
  }
  x->sim.seconds = c->stats.seconds;
  x->sim.busy = clock_busy(c);
  x->clock = c;
}
