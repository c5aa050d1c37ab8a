// Random chains of statements, as programs: points beside each other, strides, index values,
// products, rows folded and spread again, axes turned, tensors without a loop's index. Results are
// whole numbers.
#ifndef CHAINS_H
#define CHAINS_H
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util.h"

enum { MOST = 24 };

static int pick(int n) { return (int)draw(0, n - 1); }

typedef struct tensor {
  char name[4];
  int rank, size[3];
} tensor;

typedef struct chain {
  char text[4096];
  int n, last;              // tensors; the one that statements go on from
  tensor t[MOST];
} chain;

static const char letters[] = "ijk";

static void put(chain *c, const char *format, ...) {
  const size_t n = strlen(c->text);
  va_list args;
  va_start(args, format);
  vsnprintf(c->text + n, sizeof c->text - n, format, args);
  va_end(args);
}

// NAME[i=5,j=7], over the letters that `order` says.
static void put_out(chain *c, const tensor *t, const int *order) {
  put(c, "%s[", t->name);
  for (int r = 0; r < t->rank; r++)
    put(c, "%s%c=%d", r > 0 ? "," : "", letters[order == NULL ? r : order[r]], t->size[r]);
  put(c, "] = ");
}

// NAME[a*i+b,..]: coordinate r is by[r] * its letter + off[r].
static void put_read(chain *c, const tensor *t, const int *by, const int *off) {
  put(c, "%s[", t->name);
  for (int r = 0; r < t->rank; r++) {
    put(c, "%s", r > 0 ? "," : "");
    if (by != NULL && by[r] > 1) put(c, "%d*", by[r]);
    put(c, "%c", letters[r]);
    if (off != NULL && off[r] > 0) put(c, "+%d", off[r]);
  }
  put(c, "]");
}

static tensor *new_tensor(chain *c, int rank) {
  tensor *t = &c->t[c->n];
  memset(t, 0, sizeof *t);
  snprintf(t->name, sizeof t->name, "T%d", c->n++);
  t->rank = rank;
  return t;
}

// Points beside each other, or every second one.
static void points(chain *c, const tensor *p) {
  tensor *t = new_tensor(c, p->rank);
  int by[3] = {1, 1, 1}, reach[3] = {0, 0, 0}, off[3] = {0, 0, 0};
  for (int r = 0; r < p->rank; r++) {
    if (pick(3) == 0 && p->size[r] > 6) by[r] = 2;
    if (pick(2) && p->size[r] > 5) reach[r] = 1 + pick(2);
    t->size[r] = (p->size[r] - 1 - reach[r]) / by[r] + 1;
  }
  put_out(c, t, NULL);
  put_read(c, p, by, off);
  for (int k = 0; k < 2; k++) {
    for (int r = 0; r < p->rank; r++) off[r] = pick(reach[r] + 1);
    put(c, " %c ", pick(2) ? '+' : '-');
    put_read(c, p, by, off);
  }
  put(c, "\n");
}

static void values(chain *c, const tensor *p) {
  tensor *t = new_tensor(c, p->rank);
  memcpy(t->size, p->size, sizeof t->size);
  put_out(c, t, NULL);
  put_read(c, p, NULL, NULL);
  put(c, " + %c - 2*%c\n", letters[pick(p->rank)], letters[pick(p->rank)]);
}

// The last axis with a matrix of the inputs.
static void product(chain *c, const tensor *p) {
  const int last = p->rank - 1, n = 2 + pick(8);
  tensor *w = new_tensor(c, 2), *t = new_tensor(c, p->rank);
  char line[200];
  w->size[0] = p->size[last], w->size[1] = n;
  snprintf(line, sizeof line, "input %s[%d,%d] : f64\n", w->name, w->size[0], n);
  memmove(c->text + strlen(line), c->text, strlen(c->text) + 1);
  memcpy(c->text, line, strlen(line));
  memcpy(t->size, p->size, sizeof t->size);
  t->size[last] = n;
  put(c, "%s[", t->name);
  for (int r = 0; r < p->rank; r++)
    put(c, "%s%c=%d", r > 0 ? "," : "", r == last ? 'n' : letters[r], t->size[r]);
  put(c, "] = sum[%c](", letters[last]);
  put_read(c, p, NULL, NULL);
  put(c, " * %s[%c,n])\n", w->name, letters[last]);
}

// The last axis folded, and what is left of it taken from all.
static void rows(chain *c, const tensor *p) {
  const int last = p->rank - 1;
  tensor *r = new_tensor(c, last), *t = new_tensor(c, p->rank);
  memcpy(r->size, p->size, sizeof r->size);
  memcpy(t->size, p->size, sizeof t->size);
  put_out(c, r, NULL);
  put(c, "%s[%c](", pick(2) ? "sum" : "max", letters[last]);
  put_read(c, p, NULL, NULL);
  put(c, ")\n");
  put_out(c, t, NULL);
  put_read(c, p, NULL, NULL);
  put(c, pick(2) ? " - " : " + 2*");
  put_read(c, r, NULL, NULL);
  put(c, "\n");
}

static void turned(chain *c, const tensor *p) {
  const int order[3] = {1, 0, 2};
  tensor *t = new_tensor(c, p->rank);
  memcpy(t->size, p->size, sizeof t->size);
  t->size[0] = p->size[1], t->size[1] = p->size[0];
  put_out(c, t, order);
  put_read(c, p, NULL, NULL);
  put(c, "*2\n");
}

// Something that the first loop does not move, and that all of it reads.
static void still(chain *c, const tensor *p) {
  tensor *v = new_tensor(c, 1), *t = new_tensor(c, p->rank);
  v->size[0] = p->size[1];
  memcpy(t->size, p->size, sizeof t->size);
  put(c, "%s[j=%d] = X[j] * 3 - X[j+1]\n", v->name, v->size[0]);
  put_out(c, t, NULL);
  put_read(c, p, NULL, NULL);
  put(c, " - %s[j]\n", v->name);
}

// The result of an earlier statement besides.
static void both(chain *c, const tensor *p, const tensor *q) {
  tensor *t = new_tensor(c, p->rank);
  int off[3];
  for (int r = 0; r < p->rank; r++) {
    t->size[r] = p->size[r] < q->size[r] ? p->size[r] : q->size[r];
    off[r] = pick(q->size[r] - t->size[r] + 1);
  }
  put_out(c, t, NULL);
  put_read(c, p, NULL, NULL);
  put(c, " - ");
  put_read(c, q, NULL, off);
  put(c, "\n");
}

static void write_chain(chain *c) {
  const int n = 2 + pick(5), rank = 2 + pick(2);
  c->text[0] = 0;
  c->n = 0;
  tensor *a = new_tensor(c, rank);
  put(c, "input X[64] : f64\ninput %s[", a->name);
  for (int r = 0; r < rank; r++) {
    a->size[r] = 1 + pick(rank == 2 ? 40 : 14);
    put(c, "%s%d", r > 0 ? "," : "", a->size[r]);
  }
  put(c, "] : f64\n");
  c->last = 0;
  int before = 0;
  for (int s = 0; s < n; s++) {
    const tensor p = c->t[c->last], q = c->t[before];
    before = c->last;
    switch (pick(8)) {
      case 0: values(c, &p); break;
      case 1: product(c, &p); break;
      case 2: rows(c, &p); break;
      case 3: turned(c, &p); break;
      case 4: still(c, &p); break;
      case 5: both(c, &p, &q); break;
      default: points(c, &p);
    }
    c->last = c->n - 1;
  }
  put(c, "output %s", c->t[c->last].name);
  if (pick(3) == 0 && before > 0) put(c, ", %s", c->t[before].name);
  put(c, "\n");
}

#endif
