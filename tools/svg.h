// Pictures of plans for the command: graphs in layers, and time lines. Plain SVG 1.1 text.
//
// svg_plan draws nodes as boxes with lines of text, in layers from top to bottom; an edge goes down
// through the layers between its ends, so that it crosses no box. Layers by longest path, the
// order within a layer by the mean place of a node's neighbours (Sugiyama's method). Long edges are
// two stubs, each with the name of what is at the other end; layers that would reach below SVG_TALL
// go on in another column. Above it, where there is one, the time line: a row per place and a bar
// per task.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct svg_node {
  const char *title;
  const char *text;         // further lines, separated by '\n'; may be NULL
  int kind;                 // SVG_INPUT, ..
  int times;                // more than 1: it stands for so many
  int pale;                 // 1: it and its edges are drawn faintly
} svg_node;

// Boxes; stubs, which are made here; in a program as written, which is inputs, outputs and these:
// tensors between them, ovals that compute or make, cut boxes that move, the points of sequence.
enum { SVG_INPUT, SVG_STATEMENT, SVG_OUTPUT, SVG_STUB, SVG_TENSOR, SVG_OPERATOR, SVG_GENERATOR,
       SVG_SELECTOR, SVG_POINT };

typedef struct svg_edge {
  int from, to;             // nodes
  int kind;                 // SVG_FLOW, ..
  const char *text;         // beside the arrow; may be NULL
  double weight;            // 0 .. 1: how thick
  double bytes;
} svg_edge;

// A flow goes to a node of a higher number; a carry from one repetition to the next, which the same
// nodes stand for; a loop from a node to itself: one a node.
enum { SVG_FLOW, SVG_CARRY, SVG_LOOP };

typedef struct svg_bar {
  int64_t row;
  double from, to;          // seconds
  int color, merge;         // merge: of partial results
  const char *text;
  int lane;                 // set when drawn
} svg_bar;

enum { SVG_CHAR = 7, SVG_LINE = 15, SVG_GAP = 24, SVG_RISE = 46, SVG_MARGIN = 24, SVG_LONG = 4,
       SVG_TALL = 8000 };

static void svg_text(FILE *f, const char *s, size_t n) {
  for (; n > 0 && *s != 0; s++, n--) {
    if (*s == '<') fputs("&lt;", f);
    else if (*s == '>') fputs("&gt;", f);
    else if (*s == '&') fputs("&amp;", f);
    else if (*s == '"') fputs("&quot;", f);
    else fputc(*s, f);
  }
}

static void svg_head(FILE *f, double width, double height) {
  fprintf(f, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
          "viewBox=\"0 0 %.0f %.0f\" font-family=\"DejaVu Sans Mono, monospace\" "
          "font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
          width, height, width, height);
}

// ---- graphs in layers

// A box, or a place where an edge passes a layer.
typedef struct svg_spot {
  int node;                 // -1: an edge passes
  int level, rank;          // rank: place in the layer's order
  double x, width, height;  // x: of the middle
  double loop;              // of the width: what stands to the right of the box
  double want;
  int near;                 // neighbours counted in `want`
  int follows;              // an input or stub: it goes where its readers are, and pulls none
} svg_spot;

typedef struct svg_layout {
  int nspot, nlevel, nlink;
  svg_spot *spot;
  int (*link)[2];           // from a layer to the next, by layer; at[level] is the first below it
  int *at;
  int *first;               // [edge]: its first passing spot; they follow each other
  int *passes;              // [edge]
  int *order, *start;       // spots by layer and rank; start[level]
} svg_layout;

static int svg_lines(const char *s) {
  int n = s != NULL && *s != 0;
  for (; s != NULL && *s != 0; s++) n += *s == '\n';
  return n;
}

static int svg_columns(const char *s) {
  int most = 0, n = 0;
  for (; s != NULL && *s != 0; s++) {
    n = *s == '\n' ? 0 : n + ((*s & 0xc0) != 0x80);
    if (n > most) most = n;
  }
  return most;
}

static void *svg_alloc(size_t n, size_t size) { return calloc(n > 0 ? n : 1, size); }

// Layers: a node is below all it reads; what nothing precedes is right above its first reader.
// least: scratch.
static void svg_levels(int nnode, int nedge, const svg_edge *edge, int *level, int *least) {
  for (int v = 0; v < nnode; v++) level[v] = 0, least[v] = -1;
  for (int e = 0; e < nedge; e++)  // edges come in the order of their ends
    if (edge[e].kind == SVG_FLOW && level[edge[e].to] < level[edge[e].from] + 1)
      level[edge[e].to] = level[edge[e].from] + 1;
  for (int e = 0; e < nedge; e++) {
    const int from = edge[e].from, above = level[edge[e].to] - 1;
    if (edge[e].kind == SVG_FLOW && (least[from] < 0 || above < least[from])) least[from] = above;
  }
  for (int v = 0; v < nnode; v++)
    if (level[v] == 0 && least[v] > 0) level[v] = least[v];
}

static int svg_oval(const svg_node *v) {
  return v->kind == SVG_OPERATOR || v->kind == SVG_GENERATOR;
}

// An oval holds the box of its text: 4/5 of its width by 3/5 of its height.
static double svg_box_width(const svg_node *v) {
  int columns = svg_columns(v->title), more = svg_columns(v->text);
  if (v->times > 1) columns = columns < 12 ? 13 : columns + 1;  // behind it are two more
  double wide = (more > columns ? more : columns) * SVG_CHAR + 16;
  return svg_oval(v) ? wide * 5 / 4 : v->kind >= SVG_SELECTOR ? wide + 16 : wide;
}

static double svg_box_height(const svg_node *v) {
  if (v->kind == SVG_STUB) return SVG_LINE;
  double high = (1 + svg_lines(v->text)) * SVG_LINE + 8 + (v->times > 1 ? SVG_LINE + 6 : 0);
  return svg_oval(v) ? high * 5 / 3 : high;
}

enum { SVG_LOOP_WIDTH = 26 };

static double svg_loop_width(const svg_edge *e) {
  return SVG_LOOP_WIDTH + 6.1 * svg_columns(e->text);
}

// The middle of a spot's box.
static double svg_middle(const svg_spot *s) { return s->x - s->loop / 2; }

// Edges are flows from a layer to a lower one, and loops.
static int svg_spots(svg_layout *w, int nnode, const svg_node *node, const int *level, int nedge,
                     const svg_edge *edge) {
  w->first = (int *)svg_alloc((size_t)nedge, sizeof *w->first);
  w->passes = (int *)svg_alloc((size_t)nedge, sizeof *w->passes);
  if (w->first == NULL || w->passes == NULL) return 0;
  w->nspot = nnode, w->nlink = nedge;
  for (int e = 0; e < nedge; e++) {
    w->first[e] = w->nspot;
    w->passes[e] = edge[e].kind == SVG_LOOP ? -1 : level[edge[e].to] - level[edge[e].from] - 1;
    w->nspot += w->passes[e] > 0 ? w->passes[e] : 0, w->nlink += w->passes[e];
  }
  w->spot = (svg_spot *)svg_alloc((size_t)w->nspot, sizeof *w->spot);
  w->link = (int(*)[2])svg_alloc((size_t)w->nlink, sizeof *w->link);
  if (w->spot == NULL || w->link == NULL) return 0;
  for (int v = 0; v < nnode; v++) {
    svg_spot *s = &w->spot[v];
    s->node = v, s->level = level[v];
    s->follows = node[v].kind == SVG_INPUT || node[v].kind == SVG_STUB;
    s->width = svg_box_width(&node[v]);
    s->height = svg_box_height(&node[v]);
    if (s->level + 1 > w->nlevel) w->nlevel = s->level + 1;
  }
  for (int e = 0, l = 0; e < nedge; e++) {
    int at = edge[e].from;
    if (edge[e].kind == SVG_LOOP) {
      w->spot[at].loop = svg_loop_width(&edge[e]);
      w->spot[at].width += w->spot[at].loop;
      continue;
    }
    for (int k = 0; k < w->passes[e]; k++) {
      svg_spot *s = &w->spot[w->first[e] + k];
      s->node = -1, s->level = w->spot[edge[e].from].level + 1 + k, s->width = 10;
      w->link[l][0] = at, w->link[l++][1] = at = w->first[e] + k;
    }
    w->link[l][0] = at, w->link[l++][1] = edge[e].to;
  }
  return 1;
}

static const svg_spot *svg_sorted;  // of the layer being ordered; the command has one thread

static int svg_before(const void *a, const void *b) {
  const svg_spot *x = &svg_sorted[*(const int *)a], *y = &svg_sorted[*(const int *)b];
  if (x->want != y->want) return x->want < y->want ? -1 : 1;
  return x->rank - y->rank;
}

// Puts the links into the order of their layers.
static int svg_links(svg_layout *w) {
  int(*sorted)[2] = (int(*)[2])svg_alloc((size_t)w->nlink, sizeof *sorted);
  w->at = (int *)svg_alloc((size_t)w->nlevel + 2, sizeof *w->at);
  if (sorted == NULL || w->at == NULL) return free(sorted), 0;
  for (int l = 0; l < w->nlink; l++) w->at[w->spot[w->link[l][0]].level + 1]++;
  for (int k = 0; k < w->nlevel; k++) w->at[k + 1] += w->at[k];
  for (int l = w->nlink - 1; l >= 0; l--) {  // from the ends of the layers' ranges downwards
    int to = --w->at[w->spot[w->link[l][0]].level + 1];
    sorted[to][0] = w->link[l][0], sorted[to][1] = w->link[l][1];
  }
  for (int k = 0; k < w->nlevel; k++) w->at[k] = w->at[k + 1];
  w->at[w->nlevel] = w->nlink;
  free(w->link);
  w->link = sorted;
  return 1;
}

// Where the neighbours above (1), below (2) or on both sides (3) of a layer's spots are, on
// average.
static void svg_wishes(svg_layout *w, int level, int sides, int ranks) {
  const int first = w->start[level], end = w->start[level + 1];
  for (int i = first; i < end; i++) w->spot[w->order[i]].want = 0, w->spot[w->order[i]].near = 0;
  for (int down = 0; down < 2; down++) {
    if ((sides & (down ? 1 : 2)) == 0 || level - down < 0) continue;
    for (int l = w->at[level - down]; l < w->at[level - down + 1]; l++) {
      svg_spot *to = &w->spot[w->link[l][down]], *from = &w->spot[w->link[l][!down]];
      if (from->follows && !ranks) continue;
      to->want += ranks ? from->rank : from->x + (to->loop - from->loop) / 2;
      to->near++;
    }
  }
  for (int i = first; i < end; i++) {
    svg_spot *s = &w->spot[w->order[i]];
    s->want = s->near > 0 ? s->want / s->near : ranks ? s->rank : s->x;
  }
}

static int svg_order(svg_layout *w) {
  w->order = (int *)svg_alloc((size_t)w->nspot, sizeof *w->order);
  w->start = (int *)svg_alloc((size_t)w->nlevel + 1, sizeof *w->start);
  if (w->order == NULL || w->start == NULL) return 0;
  for (int i = 0; i < w->nspot; i++) w->start[w->spot[i].level + 1]++;
  for (int k = 0; k < w->nlevel; k++) w->start[k + 1] += w->start[k];
  for (int i = w->nspot - 1; i >= 0; i--) {
    int k = w->spot[i].level;
    w->spot[i].rank = --w->start[k + 1];
    w->order[w->spot[i].rank] = i;
  }
  for (int k = w->nlevel; k > 0; k--) w->start[k] = k < w->nlevel ? w->start[k + 1] : w->nspot;
  w->start[0] = 0;
  for (int i = w->nspot - 1, k = w->nlevel; k > 0; k--) {  // first spot of each layer
    while (i >= 0 && w->spot[w->order[i]].level >= k) i--;
    w->start[k] = i + 1;
  }
  for (int i = 0; i < w->nspot; i++) {
    svg_spot *s = &w->spot[w->order[i]];
    s->rank = i - w->start[s->level];
  }
  if (!svg_links(w)) return 0;
  svg_sorted = w->spot;
  for (int turn = 0; turn < 12; turn++) {
    int down = turn % 2 == 0;
    for (int k = 0; k < w->nlevel; k++) {
      int level = down ? k : w->nlevel - 1 - k;
      svg_wishes(w, level, down ? 1 : 2, 1);
      qsort(w->order + w->start[level], (size_t)(w->start[level + 1] - w->start[level]),
            sizeof *w->order, svg_before);
      for (int i = w->start[level]; i < w->start[level + 1]; i++)
        w->spot[w->order[i]].rank = i - w->start[level];
    }
  }
  return 1;
}

static double svg_apart(const svg_spot *a, const svg_spot *b) {
  return (a->width + b->width) / 2 + SVG_GAP;
}

// A run of spots that touch; x: of the first.
typedef struct svg_run {
  double x, weight;
  int n;
} svg_run;

// Puts a layer's spots as near to where they want to be as their order and widths allow: least
// squares, by merging neighbours that are in each other's way (isotonic regression).
static void svg_settle(svg_layout *w, int level, svg_run *run) {
  int n = 0, from = w->start[level], to = w->start[level + 1];
  double offset = 0;
  for (int i = from; i < to; i++) {
    svg_spot *s = &w->spot[w->order[i]];
    if (i > from) offset += svg_apart(&w->spot[w->order[i - 1]], s);
    run[n].x = s->want - offset, run[n].n = 1;
    run[n++].weight = s->follows ? 0.1 : s->node < 0 ? 4 : 1 + s->near;
    while (n > 1 && run[n - 2].x > run[n - 1].x) {
      svg_run *a = &run[n - 2], *b = &run[n - 1];
      a->x = (a->x * a->weight + b->x * b->weight) / (a->weight + b->weight);
      a->weight += b->weight, a->n += b->n;
      n--;
    }
  }
  offset = 0;
  for (int r = 0, i = from; r < n; i += run[r++].n) {
    for (int k = i; k < i + run[r].n; k++) {
      if (k > from) offset += svg_apart(&w->spot[w->order[k - 1]], &w->spot[w->order[k]]);
      w->spot[w->order[k]].x = run[r].x + offset;
    }
  }
}

// Moves spots towards their neighbours in turn; the order of a layer stays. Gives the width; 0: out
// of memory.
static double svg_place(svg_layout *w) {
  double least = 0, most = 0;
  svg_run *run = (svg_run *)svg_alloc((size_t)w->nspot, sizeof *run);
  if (run == NULL) return 0;
  for (int k = 0; k < w->nlevel; k++) {
    for (int i = w->start[k]; i < w->start[k + 1]; i++) {
      svg_spot *s = &w->spot[w->order[i]];
      s->x = i > w->start[k] ? w->spot[w->order[i - 1]].x + svg_apart(&w->spot[w->order[i - 1]], s)
                             : 0;
    }
  }
  for (int turn = 0; turn < 40; turn++) {
    for (int i = 0; i < w->nlevel; i++) {
      int k = turn % 2 == 0 ? i : w->nlevel - 1 - i;
      svg_wishes(w, k, turn < 20 ? 1 + turn % 2 : 3, 0);
      svg_settle(w, k, run);
    }
  }
  for (int i = 0; i < w->nspot; i++) {
    double a = w->spot[i].x - w->spot[i].width / 2, b = w->spot[i].x + w->spot[i].width / 2;
    if (i == 0 || a < least) least = a;
    if (i == 0 || b > most) most = b;
  }
  for (int i = 0; i < w->nspot; i++) w->spot[i].x += SVG_MARGIN - least;
  free(run);
  return most - least + 2 * SVG_MARGIN;
}

static void svg_box(FILE *f, double x, double y, double width, double height, int of) {
  static const char *const fill[] = {"#eef2f7", "#fff7df", "#e3f4e3", "none", "#ffffff", "#fff7df",
                                     "#fbe9e0", "#efe6f7", "#e8e8e8"};
  const double right = x + width, bottom = y + height, middle = y + height / 2;
  if (of == SVG_OPERATOR || of == SVG_GENERATOR)
    fprintf(f, "<ellipse cx=\"%.1f\" cy=\"%.1f\" rx=\"%.1f\" ry=\"%.1f\"", x + width / 2, middle,
            width / 2, height / 2);
  else if (of == SVG_SELECTOR)
    fprintf(f, "<polygon points=\"%.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f %.1f,%.1f\"",
            x, middle, x + 8, y, right - 8, y, right, middle, right - 8, bottom, x + 8, bottom);
  else
    fprintf(f, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%d\"", x, y, width,
            height, of == SVG_POINT ? 11 : 4);
  fprintf(f, " fill=\"%s\" stroke=\"#556\"/>\n", fill[of]);
}

static void svg_boxes(FILE *f, const svg_layout *w, int nnode, const svg_node *node,
                      const double *top) {
  for (int v = 0; v < nnode; v++) {
    const svg_spot *s = &w->spot[v];
    const int many = node[v].times > 1, stub = node[v].kind == SVG_STUB;
    double x = s->x - s->width / 2, y = top[s->level], wide = s->width - s->loop;
    const char *t = node[v].text;
    if (node[v].pale) fputs("<g opacity=\"0.5\">\n", f);
    for (int k = many ? 2 : 0; k >= 0 && !stub; k--)
      svg_box(f, x + 3 * k, y + 3 * k, wide - (many ? 6 : 0), s->height - (many ? 6 : 0),
              node[v].kind);
    if (svg_oval(&node[v])) x += wide / 10, y += s->height / 5;
    else if (node[v].kind >= SVG_SELECTOR) x += 8;
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\"%s>", x + 8, y + SVG_LINE - (stub ? 4 : 0),
            stub ? " font-style=\"italic\" font-size=\"11\" fill=\"#446\"" :
                   " font-weight=\"bold\"");
    svg_text(f, node[v].title, strlen(node[v].title));
    fputs("</text>\n", f);
    for (int line = 2; (t != NULL && *t != 0) || (many && line == 2 + svg_lines(node[v].text));
         line++) {
      size_t n = t != NULL ? strcspn(t, "\n") : 0;
      fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" fill=\"%s\">", x + 8, y + line * SVG_LINE,
              n > 0 ? "#333" : "#a33");
      if (n > 0) svg_text(f, t, n);
      else fprintf(f, "%d times", node[v].times);
      fputs("</text>\n", f);
      if (t != NULL) t += n + (t[n] == '\n');
    }
    if (node[v].pale) fputs("</g>\n", f);
  }
}

// From a box to itself, at its right.
static void svg_loop(FILE *f, const svg_spot *s, double y, const svg_edge *e) {
  double x = s->x + s->width / 2 - s->loop, from = y + 0.75 * s->height, to = y + 0.25 * s->height;
  fprintf(f, "<path data-bytes=\"%.17g\" d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\" "
          "fill=\"none\" stroke=\"#8e44ad\" stroke-width=\"%.1f\" marker-end=\"url(#a)\"/>\n"
          "<text x=\"%.1f\" y=\"%.1f\" font-size=\"10\" fill=\"#628\">", e->bytes, x, from,
          x + 26, from + 4, x + 26, to - 4, x + 1, to, 1 + 4 * e->weight, x + 23,
          y + s->height / 2 + 3);
  svg_text(f, e->text, strlen(e->text));
  fputs("</text>\n", f);
}

static void svg_edges(FILE *f, const svg_layout *w, const svg_node *node, int nedge,
                      const svg_edge *edge, const double *top, const double *bottom) {
  for (int e = 0; e < nedge; e++) {
    const svg_spot *a = &w->spot[edge[e].from], *b = &w->spot[edge[e].to];
    if (edge[e].kind == SVG_LOOP) {
      svg_loop(f, a, top[a->level], &edge[e]);
      continue;
    }
    double x = svg_middle(a), y = top[a->level] + a->height;
    fprintf(f, "<path data-bytes=\"%.17g\" d=\"M%.1f %.1f", edge[e].bytes, x, y);
    for (int k = 0; k <= w->passes[e]; k++) {
      const svg_spot *s = k < w->passes[e] ? &w->spot[w->first[e] + k] : b;
      double to = top[s->level], middle = (y + to) / 2, mid = svg_middle(s);
      fprintf(f, "C%.1f %.1f %.1f %.1f %.1f %.1f", x, middle, mid, middle, mid, to);
      x = mid, y = s == b ? to : bottom[s->level];
      if (s != b) fprintf(f, "L%.1f %.1f", x, y);
    }
    fprintf(f, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\"%s marker-end=\"url(#a)\"/>\n",
            edge[e].weight > 0 ? "#c0392b" : "#99a", 1 + 4 * edge[e].weight,
            node[edge[e].from].pale || node[edge[e].to].pale ? " stroke-opacity=\"0.5\"" : "");
  }
}

typedef struct svg_label {
  double x, y, wide;
} svg_label;

// A place beside the edge, near its start, where no label is yet; the first of those tried when
// all are taken.
static svg_label svg_label_place(const svg_layout *w, const svg_edge *edge, int e,
                                 const double *top, const svg_label *taken, int ntaken) {
  static const double along[] = {0.3, 0.45, 0.6, 0.2, 0.75, 0.52, 0.37, 0.67};
  const svg_spot *a = &w->spot[edge[e].from];
  const svg_spot *b = &w->spot[w->passes[e] > 0 ? w->first[e] : edge[e].to];
  svg_label best = {0, 0, svg_columns(edge[e].text) * 6.1 + 2};
  double y = top[a->level] + a->height, rise = top[b->level] - y;
  for (int side = 0; side < 2; side++) {
    for (int i = 0; i < 8; i++) {
      double t = along[i], bend = t * t * (3 - 2 * t), hits = 0;
      svg_label l = {svg_middle(a) + (svg_middle(b) - svg_middle(a)) * bend +
                     (side ? -best.wide - 4 : 4),
                     y + rise * (1.5 * t * (1 - t) + t * t * t) + 3, best.wide};
      for (int k = 0; k < ntaken; k++)
        hits += taken[k].x < l.x + l.wide && l.x < taken[k].x + taken[k].wide &&
                taken[k].y - 11 < l.y && l.y - 11 < taken[k].y;
      if (hits == 0) return l;
      if (side == 0 && i == 0) best = l;
    }
  }
  return best;
}

// What moves along the edges; above all lines, so that none crosses a text. 0: out of memory.
static int svg_labels(FILE *f, const svg_layout *w, int nedge, const svg_edge *edge,
                      const double *top) {
  svg_label *taken = (svg_label *)svg_alloc((size_t)nedge, sizeof *taken);
  int n = 0;
  if (taken == NULL) return 0;
  for (int e = 0; e < nedge; e++) {
    if (edge[e].text == NULL || edge[e].text[0] == 0 || edge[e].kind == SVG_LOOP) continue;
    svg_label l = taken[n] = svg_label_place(w, edge, e, top, taken, n);
    n++;
    fprintf(f, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"11\" fill=\"#fff\" "
            "fill-opacity=\"0.85\"/><text x=\"%.1f\" y=\"%.1f\" font-size=\"10\" "
            "fill=\"#822\">", l.x - 1, l.y - 9, l.wide, l.x, l.y);
    svg_text(f, edge[e].text, strlen(edge[e].text));
    fputs("</text>\n", f);
  }
  free(taken);
  return 1;
}

// ---- time lines

enum { SVG_ROWS = 64, SVG_ROW = 20, SVG_TIME_LEFT = 88, SVG_TIME_RIGHT = 60, SVG_TIME_WIDTH = 1200,
       SVG_TIME_MOST = 4800, SVG_LANES = 8, SVG_KEYS = 24, SVG_KEY = 270, SVG_ROWS_TALL = 2000 };

// Rows beyond SVG_ROWS are left out, and the picture says so.
typedef struct svg_time {
  const char *title;
  const char *what;         // a row is: "place", "thread"
  int64_t nrow, nbar;
  int64_t dropped;          // tasks that have no bar
  svg_bar *bar;             // in any order; they are sorted
  const char *const *name;  // of each color; NULL: the text of its bars
  double seconds;           // of the whole
  int keys;                 // 1: a legend below
  double width, height, busy;  // set when measured; busy: seconds, of all rows drawn
  int64_t shown;            // rows; set when measured
} svg_time;

// Work of one color, for the legend.
typedef struct svg_key {
  const char *text;
  int color;
  double seconds;
} svg_key;

static int svg_bar_before(const void *a, const void *b) {
  const svg_bar *x = (const svg_bar *)a, *y = (const svg_bar *)b;
  if (x->row != y->row) return x->row < y->row ? -1 : 1;
  if (x->from != y->from) return x->from < y->from ? -1 : 1;
  return x->color - y->color;
}

static int svg_key_before(const void *a, const void *b) {
  const svg_key *x = (const svg_key *)a, *y = (const svg_key *)b;
  if (x->seconds != y->seconds) return x->seconds > y->seconds ? -1 : 1;
  return x->color - y->color;
}

// A time as text with a unit that fits it.
static const char *svg_seconds(char *b, size_t size, double s, double like) {
  double k = like >= 1 ? 1 : like >= 1e-3 ? 1e3 : like >= 1e-6 ? 1e6 : 1e9;
  snprintf(b, size, "%.3g %s", s * k, k == 1 ? "s" : k == 1e3 ? "ms" : k == 1e6 ? "us" : "ns");
  return b;
}

// Part 0, 1 or 2 (red, green, blue) of a color, 0 to 255; hue in degrees, the others from 0 to 1.
static int svg_rgb(int part, int hue, double saturation, double light) {
  double most = saturation * (light < 0.5 ? light : 1 - light);
  double k = (hue + 240 * part) % 360 / 30.0, y = k - 3 < 9 - k ? k - 3 : 9 - k;
  y = y > 1 ? 1 : y < -1 ? -1 : y;
  return (int)(255 * (light - most * y) + 0.5);
}

// Hues far apart for neighbours; merges of partial results darker.
static void svg_fill(FILE *f, int color, int merge) {
  int hue = (int)((int64_t)color * 137 % 360);
  double saturation = color / 8 % 2 ? 0.45 : 0.65;
  double light = merge ? 0.52 : color / 4 % 2 ? 0.82 : 0.74;
  fprintf(f, "fill=\"#%02x%02x%02x\"", svg_rgb(0, hue, saturation, light),
          svg_rgb(1, hue, saturation, light), svg_rgb(2, hue, saturation, light));
}

// Bars of a row that overlap lie in lanes; the seconds in which a row has any.
static int svg_lanes(const svg_time *t, int64_t *at, int64_t row, double *busy) {
  double end[SVG_LANES] = {0}, last = 0;
  int most = 1, n = 0;
  *busy = 0;
  for (; *at < t->nbar && t->bar[*at].row == row; ++*at) {
    svg_bar *b = &t->bar[*at];
    int lane = 0;
    while (lane < n && lane < SVG_LANES - 1 && end[lane] > b->from) lane++;
    if (lane == n) n++;
    b->lane = lane, end[lane] = b->to;
    if (n > most) most = n;
    if (b->to > last) *busy += b->to - (b->from > last ? b->from : last), last = b->to;
  }
  return most;
}

static double svg_time_width(const svg_time *t) {
  int64_t most = 0, n = 0;
  for (int64_t i = 0; i < t->nbar; i++) {
    n = i > 0 && t->bar[i].row == t->bar[i - 1].row ? n + 1 : 1;
    if (n > most) most = n;
  }
  double wide = 8 * (double)most;
  return wide < SVG_TIME_WIDTH ? SVG_TIME_WIDTH : wide > SVG_TIME_MOST ? SVG_TIME_MOST : wide;
}

static void svg_scale(FILE *f, double y, double width, double seconds) {
  double tick = 1e-12;
  char b[40];
  double most = width / 120;
  while (seconds / tick > most)
    tick *= seconds / tick > 5 * most ? 10 : seconds / tick > 2 * most ? 5 : 2;
  for (double t = 0; t <= seconds * 1.0001; t += tick) {
    double x = SVG_TIME_LEFT + width * t / seconds;
    fprintf(f, "<path d=\"M%.1f %.1fv6\" stroke=\"#556\"/><text x=\"%.1f\" y=\"%.1f\" "
            "font-size=\"10\" text-anchor=\"middle\">%s</text>\n", x, y, x, y + 18,
            svg_seconds(b, sizeof b, t, seconds));
  }
}

static void svg_one_bar(FILE *f, const svg_bar *b, double y, double height, double per) {
  double x = SVG_TIME_LEFT + per * b->from, wide = per * (b->to - b->from);
  char from[40], to[40];
  fprintf(f, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" ", x, y,
          wide > 0.4 ? wide : 0.4, height);
  svg_fill(f, b->color, b->merge);
  if (wide > 2) fputs(" stroke=\"#555\" stroke-width=\"0.3\"", f);
  fputs("><title>", f);
  svg_text(f, b->text, strlen(b->text));
  fprintf(f, "%s: %s to %s</title></rect>\n", b->merge ? ", partial results merged" : "",
          svg_seconds(from, sizeof from, b->from, b->to), svg_seconds(to, sizeof to, b->to, b->to));
  size_t room = strcspn(b->text, "[");  // the name alone, where there is no room for its indices
  if (wide >= svg_columns(b->text) * 6.1 + 6) room = strlen(b->text);
  if (height < 12 || wide < (double)room * 6.1 + 6) return;
  fprintf(f, "<text x=\"%.2f\" y=\"%.1f\" font-size=\"10\">", x + 3, y + height / 2 + 4);
  svg_text(f, b->text, room);
  fputs("</text>\n", f);
}

// The colors of a time line, those of the most work first; *count of them. NULL: out of memory.
static svg_key *svg_keys(const svg_time *t, int *count, double *all) {
  int ncolor = 0, n = 0;
  *all = 0;
  for (int64_t i = 0; i < t->nbar; i++)
    if (t->bar[i].color >= ncolor) ncolor = t->bar[i].color + 1;
  svg_key *key = (svg_key *)svg_alloc((size_t)ncolor, sizeof *key);
  if (key == NULL) return NULL;
  for (int64_t i = 0; i < t->nbar; i++) {
    svg_key *k = &key[t->bar[i].color];
    k->color = t->bar[i].color;
    k->text = t->name != NULL ? t->name[k->color] : t->bar[i].text;
    k->seconds += t->bar[i].to - t->bar[i].from;
    *all += t->bar[i].to - t->bar[i].from;
  }
  for (int i = 0; i < ncolor; i++)
    if (key[i].text != NULL) key[n++] = key[i];
  if (n > 0) qsort(key, (size_t)n, sizeof *key, svg_key_before);
  *count = n;
  return key;
}

enum { SVG_COLUMNS = SVG_TIME_WIDTH / SVG_KEY, SVG_KEYS_MOST = 480 };

// Of n keys those that are shown: so many that they name 90 % of the time.
static int svg_key_count(const svg_key *key, int n, double all) {
  double named = 0;
  int shown = 0;
  while (shown < n && shown < SVG_KEYS_MOST && (shown < SVG_KEYS || named < 0.9 * all))
    named += key[shown++].seconds;
  return shown;
}

static int svg_key_rows(int shown) { return (shown + SVG_COLUMNS - 1) / SVG_COLUMNS; }

// Returns 0 when out of memory.
static int svg_legend(FILE *f, const svg_time *t, double top) {
  int n, merges = 0;
  double all, rest = 0;
  svg_key *key = svg_keys(t, &n, &all);
  if (key == NULL) return 0;
  int shown = svg_key_count(key, n, all), rows = svg_key_rows(shown);
  for (int i = 0; i < shown; i++) {
    double x = SVG_TIME_LEFT + i / rows * SVG_KEY, y = top + i % rows * SVG_LINE;
    size_t length = strlen(key[i].text), shown_bytes = length > 34 ? 32 : length;
    while (shown_bytes < length && (key[i].text[shown_bytes] & 0xC0) == 0x80) shown_bytes--;
    fprintf(f, "<rect x=\"%.1f\" y=\"%.1f\" width=\"12\" height=\"10\" stroke=\"#555\" "
            "stroke-width=\"0.3\" ", x, y);
    svg_fill(f, key[i].color, 0);
    fprintf(f, "/><text x=\"%.1f\" y=\"%.1f\" font-size=\"10\">%4.1f%% ", x + 17, y + 9,
            all > 0 ? 100 * key[i].seconds / all : 0);
    svg_text(f, key[i].text, shown_bytes);
    fputs(length > 34 ? "..</text>\n" : "</text>\n", f);
  }
  for (int i = shown; i < n; i++) rest += key[i].seconds;
  for (int64_t i = 0; i < t->nbar; i++) merges |= t->bar[i].merge;
  double y = top + rows * SVG_LINE;
  fprintf(f, "<rect x=\"%d\" y=\"%.1f\" width=\"12\" height=\"10\" fill=\"#ececec\" "
          "stroke=\"#555\" stroke-width=\"0.3\"/><text x=\"%d\" y=\"%.1f\" font-size=\"10\">"
          "idle", SVG_TIME_LEFT, y, SVG_TIME_LEFT + 17, y + 9);
  if (merges) fputs("; darker: partial results are merged", f);
  if (shown < n)
    fprintf(f, "; %.1f%%: %d more", all > 0 ? 100 * rest / all : 0, n - shown);
  fputs("; shares are of the busy time</text>\n", f);
  free(key);
  return 1;
}

static double svg_row_height(int lanes) { return lanes > 2 ? lanes * 10 : SVG_ROW; }

// Sorts the bars and finds out how much room all needs; 0: out of memory.
static int svg_measure(svg_time *t) {
  double busy, all;
  int n;
  int64_t at = 0;
  if (t->nbar > 0) qsort(t->bar, (size_t)t->nbar, sizeof *t->bar, svg_bar_before);
  svg_key *key = svg_keys(t, &n, &all);
  if (key == NULL) return 0;
  const int shown = svg_key_count(key, n, all);
  free(key);
  t->width = svg_time_width(t);
  t->height = 2 * SVG_LINE + 32;
  for (t->shown = 0; t->shown < t->nrow && t->shown < SVG_ROWS; t->shown++) {
    double more = svg_row_height(svg_lanes(t, &at, t->shown, &busy));
    if (t->shown > 0 && t->height + more > SVG_ROWS_TALL) break;
    t->height += more;
    t->busy += busy;
  }
  if (t->keys) t->height += (svg_key_rows(shown) + 1) * SVG_LINE + 8;
  return 1;
}

static void svg_time_title(FILE *f, const svg_time *t, double y) {
  char b[40];
  double whole = t->seconds * (double)t->shown, busy = whole > 0 ? 100 * t->busy / whole : 0;
  fprintf(f, "<text x=\"8\" y=\"%.1f\">", y);
  svg_text(f, t->title, strlen(t->title));
  fprintf(f, ": %s; busy %.1f%%, idle %.1f%%", svg_seconds(b, sizeof b, t->seconds, t->seconds),
          busy, 100 - busy);
  if (t->shown < t->nrow)
    fprintf(f, "; %ss 0 to %lld of %lld", t->what, (long long)t->shown - 1, (long long)t->nrow);
  if (t->dropped > 0) fprintf(f, "; %lld tasks are not drawn", (long long)t->dropped);
  fputs("</text>\n", f);
}

// Draws one that was measured, from `top` downwards; 0: out of memory.
static int svg_timeline(FILE *f, const svg_time *t, double top) {
  const double seconds = t->seconds > 0 ? t->seconds : 1;
  double y = top + SVG_LINE, busy;
  svg_time_title(f, t, top + 8);
  for (int64_t r = 0, at = 0, first = 0; r < t->shown; r++, first = at) {
    int lanes = svg_lanes(t, &at, r, &busy);
    double height = svg_row_height(lanes), lane = (height - 2) / lanes, middle = y + height / 2 + 3;
    fprintf(f, "<text x=\"8\" y=\"%.1f\" font-size=\"10\">%s %lld</text>\n<rect x=\"%d\" "
            "y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#ececec\"/>\n", middle, t->what,
            (long long)r, SVG_TIME_LEFT, y, t->width, height - 2);
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"10\" fill=\"#333\">%.0f%%</text>\n",
            SVG_TIME_LEFT + t->width + 6, middle, 100 * busy / seconds);
    for (int64_t i = first; i < at; i++)
      svg_one_bar(f, &t->bar[i], y + lane * t->bar[i].lane, lane, t->width / seconds);
    y += height;
  }
  svg_scale(f, y, t->width, seconds);
  return !t->keys || svg_legend(f, t, y + 32);
}

// ---- the page

static double svg_finite(double v) { return v - v == 0 ? v : 0; }

// No number of a picture is ever infinite: such times are drawn as 0.
static void svg_sane(svg_time *t) {
  t->seconds = svg_finite(t->seconds);
  for (int64_t i = 0; i < t->nbar; i++) {
    t->bar[i].from = svg_finite(t->bar[i].from);
    t->bar[i].to = svg_finite(t->bar[i].to);
  }
}

// A graph of which long edges are stubs, and whose layers are columns.
typedef struct svg_graph {
  int nnode, nedge, ncolumn;
  svg_node *node;
  svg_edge *edge;
  int *level, *column;      // of each node
  int *number;              // of each node, among those of its column
  int *out;                 // of each node: its stub; -1: none
} svg_graph;

// A column as it is drawn.
typedef struct svg_column {
  svg_layout w;
  int nnode, nedge;
  svg_node *node;
  svg_edge *edge;
  int *level;
  double *top, *bottom, width, height;
} svg_column;

static void svg_graph_free(svg_graph *g) {
  free(g->node), free(g->edge), free(g->level), free(g->column), free(g->number), free(g->out);
}

static void svg_column_free(svg_column *c) {
  svg_layout *w = &c->w;
  free(c->node), free(c->edge), free(c->level), free(c->top), free(c->bottom);
  free(w->spot), free(w->link), free(w->at), free(w->first), free(w->passes);
  free(w->order), free(w->start);
}

// Which column every layer is in: as many one below the other as `tall` has room for, and a layer
// for stubs above and below. Layers that go on in another column leave two numbers out. Returns the
// number of columns; 0: out of memory.
static int svg_columns_of(int nnode, const svg_node *node, int *level, int *column, double tall) {
  int nlevel = 0, at = 0;
  for (int v = 0; v < nnode; v++)
    if (level[v] + 1 > nlevel) nlevel = level[v] + 1;
  double *height = (double *)svg_alloc((size_t)nlevel, sizeof *height);
  int *of = (int *)svg_alloc((size_t)nlevel, sizeof *of);
  if (height == NULL || of == NULL) return free(height), free(of), 0;
  for (int v = 0; v < nnode; v++)
    if (svg_box_height(&node[v]) > height[level[v]]) height[level[v]] = svg_box_height(&node[v]);
  double stubs = 2 * (SVG_LINE + SVG_RISE), y = stubs;
  for (int k = 0; k < nlevel; k++) {
    y += height[k] + SVG_RISE;
    if (k > 0 && y > tall) at++, y = stubs + height[k] + SVG_RISE;
    of[k] = at;
  }
  for (int v = 0; v < nnode; v++) column[v] = of[level[v]], level[v] += 1 + 2 * column[v];
  free(height), free(of);
  return at + 1;
}

// "T" of "T[i,j] | k" or "T: sum[k]", with what follows; the caller's to free.
static char *svg_stub_text(const char *before, const char *title, const char *after) {
  size_t n = strcspn(title, "[:"), room = strlen(before) + n + strlen(after) + 1;
  char *s = (char *)svg_alloc(room, 1);
  if (s != NULL) snprintf(s, room, "%s%.*s%s", before, (int)n, title, after);
  return s;
}

static int svg_stub(svg_graph *g, const char *name, int level, int column) {
  svg_node *v = &g->node[g->nnode];
  memset(v, 0, sizeof *v);
  v->title = name, v->kind = SVG_STUB;
  g->level[g->nnode] = level, g->column[g->nnode] = column;
  return g->nnode++;
}

static void svg_flow(svg_graph *g, int from, int to, double weight, double bytes) {
  svg_edge *e = &g->edge[g->nedge++];
  memset(e, 0, sizeof *e);
  e->from = from, e->to = to, e->weight = weight, e->bytes = bytes;
}

// Where a long edge ends: a stub with the name of its start; and at its start, one that names who
// reads it.
static int svg_cut(svg_graph *g, const svg_edge *e) {
  const int carry = e->kind == SVG_CARRY;
  const char *moved = e->text != NULL ? e->text : "", *gap = moved[0] ? " " : "";
  char tail[80];
  snprintf(tail, sizeof tail, "%s%s%s", carry ? " of one before" : "", gap, moved);
  char *in = svg_stub_text("", g->node[e->from].title, tail);
  if (in == NULL) return 0;
  const int stub = svg_stub(g, in, g->level[e->to] - 1, g->column[e->to]);
  g->node[stub].pale = g->node[e->from].pale | g->node[e->to].pale;
  svg_flow(g, stub, e->to, e->weight, e->bytes);
  const char *to = carry ? "one after" : g->node[e->to].title;
  char *out;
  if (g->out[e->from] < 0) {
    out = svg_stub_text("to ", to, "");
    if (out == NULL) return 0;
    g->out[e->from] = svg_stub(g, out, g->level[e->from] + 1, g->column[e->from]);
    g->node[g->out[e->from]].pale = g->node[e->from].pale;
    svg_flow(g, e->from, g->out[e->from], 0, 0);
    return 1;
  }
  svg_node *v = &g->node[g->out[e->from]];
  const size_t n = strlen(v->title);
  if (strstr(v->title, "..") != NULL || (carry && strstr(v->title, to) != NULL)) return 1;
  out = svg_stub_text(v->title, n > 40 ? ", .." : ", ", "");
  char *more = out == NULL || n > 40 ? out : svg_stub_text(out, to, "");
  if (more == NULL) return free(out), 0;
  if (more != out) free(out);
  free((void *)(uintptr_t)v->title);
  v->title = more;
  return 1;
}

// Returns 0 when out of memory.
static int svg_cut_long(svg_graph *g, int nnode, const svg_node *node, int nedge,
                        const svg_edge *edge, double tall) {
  const size_t nodes = (size_t)nnode + 2 * (size_t)nedge, edges = 2 * (size_t)nedge;
  g->node = (svg_node *)svg_alloc(nodes, sizeof *g->node);
  g->edge = (svg_edge *)svg_alloc(edges, sizeof *g->edge);
  g->level = (int *)svg_alloc(nodes, sizeof *g->level);
  g->column = (int *)svg_alloc(nodes, sizeof *g->column);
  g->number = (int *)svg_alloc(nodes, sizeof *g->number);
  g->out = (int *)svg_alloc(nodes, sizeof *g->out);
  if (g->node == NULL || g->edge == NULL || g->level == NULL || g->column == NULL ||
      g->number == NULL || g->out == NULL)
    return 0;
  for (int v = 0; v < nnode; v++) g->node[v] = node[v];
  svg_levels(nnode, nedge, edge, g->level, g->number);
  g->ncolumn = svg_columns_of(nnode, node, g->level, g->column, tall);
  g->nnode = nnode;
  for (int v = 0; v < nnode; v++) g->out[v] = -1;
  for (int e = 0; e < nedge; e++) {
    const svg_edge *x = &edge[e];
    int whole = x->kind == SVG_LOOP || (x->kind == SVG_FLOW &&
                g->column[x->from] == g->column[x->to] &&
                g->level[x->to] - g->level[x->from] <= SVG_LONG);
    if (whole) g->edge[g->nedge++] = *x;
    else if (!svg_cut(g, x)) return 0;
  }
  return g->ncolumn > 0;
}

// Lays out column k of a graph, from `y` on; 0: out of memory.
static int svg_column_make(svg_column *c, svg_graph *g, int k, double y) {
  int first = -1;
  c->node = (svg_node *)svg_alloc((size_t)g->nnode, sizeof *c->node);
  c->level = (int *)svg_alloc((size_t)g->nnode, sizeof *c->level);
  c->edge = (svg_edge *)svg_alloc((size_t)g->nedge, sizeof *c->edge);
  if (c->node == NULL || c->level == NULL || c->edge == NULL) return 0;
  for (int v = 0; v < g->nnode; v++)
    if (g->column[v] == k && (first < 0 || g->level[v] < first)) first = g->level[v];
  for (int v = 0; v < g->nnode; v++) {
    if (g->column[v] != k) continue;
    g->number[v] = c->nnode;
    c->level[c->nnode] = g->level[v] - first;
    c->node[c->nnode++] = g->node[v];
  }
  for (int e = 0; e < g->nedge; e++) {
    if (g->column[g->edge[e].to] != k) continue;
    c->edge[c->nedge] = g->edge[e];
    c->edge[c->nedge].from = g->number[g->edge[e].from];
    c->edge[c->nedge++].to = g->number[g->edge[e].to];
  }
  if (!svg_spots(&c->w, c->nnode, c->node, c->level, c->nedge, c->edge) || !svg_order(&c->w))
    return 0;
  const svg_layout *w = &c->w;
  c->width = svg_place(&c->w);
  c->top = (double *)svg_alloc((size_t)w->nlevel + 1, sizeof *c->top);
  c->bottom = (double *)svg_alloc((size_t)w->nlevel + 1, sizeof *c->bottom);
  if (c->width <= 0 || c->top == NULL || c->bottom == NULL) return 0;
  for (int l = 0; l < w->nlevel; l++) {
    double height = 0;
    for (int i = w->start[l]; i < w->start[l + 1]; i++)
      if (w->spot[w->order[i]].height > height) height = w->spot[w->order[i]].height;
    c->top[l] = y, c->bottom[l] = y + height;
    if (w->start[l + 1] > w->start[l]) y += height + SVG_RISE;
  }
  c->height = y;
  return 1;
}

static int svg_column_draw(FILE *f, const svg_column *c, double x) {
  fprintf(f, "<g transform=\"translate(%.1f 0)\">\n", x);
  svg_edges(f, &c->w, c->node, c->nedge, c->edge, c->top, c->bottom);
  svg_boxes(f, &c->w, c->nnode, c->node, c->top);
  int ok = svg_labels(f, &c->w, c->nedge, c->edge, c->top);
  fputs("</g>\n", f);
  return ok;
}

static void svg_page(FILE *f, const char *title, double width, double height) {
  svg_head(f, width, height);
  fputs("<defs><marker id=\"a\" markerWidth=\"8\" markerHeight=\"8\" refX=\"7\" refY=\"4\" "
        "orient=\"auto\" markerUnits=\"userSpaceOnUse\"><path d=\"M0 0L8 4L0 8z\" "
        "fill=\"#667\"/></marker></defs>\n", f);
  fprintf(f, "<text x=\"8\" y=\"%d\" font-size=\"14\">", SVG_MARGIN + 4);
  svg_text(f, title, strlen(title));
  fputs("</text>\n", f);
}

// Draws a graph, its edges in the order of the nodes they go to, below ntime time lines; at most
// SVG_TALL high. 0: out of memory.
static int svg_plan(FILE *f, const char *title, int nnode, const svg_node *node, int nedge,
                    const svg_edge *edge, int ntime, svg_time *time) {
  double head = SVG_MARGIN + 2 * SVG_LINE, y = head, wide = 0, high = 0;
  double width = svg_columns(title) * (SVG_CHAR + 2) + 2 * SVG_MARGIN;
  svg_graph g;
  svg_column *column = NULL;
  int ok = 1;
  memset(&g, 0, sizeof g);
  for (int i = 0; i < ntime && ok; i++) {
    svg_sane(&time[i]);
    ok = svg_measure(&time[i]);
    y += time[i].height;
    if (SVG_TIME_LEFT + SVG_TIME_RIGHT + time[i].width > width)
      width = SVG_TIME_LEFT + SVG_TIME_RIGHT + time[i].width;
  }
  ok = ok && svg_cut_long(&g, nnode, node, nedge, edge, SVG_TALL - y);
  column = (svg_column *)svg_alloc((size_t)g.ncolumn, sizeof *column);
  ok = ok && column != NULL;
  for (int k = 0; k < g.ncolumn && ok; k++) {
    ok = svg_column_make(&column[k], &g, k, y);
    wide += column[k].width;
    if (column[k].height > high) high = column[k].height;
  }
  if (ok) {
    svg_page(f, title, wide > width ? wide : width, high);
    for (int i = 0; i < ntime && ok; head += time[i++].height) ok = svg_timeline(f, &time[i], head);
    wide = 0;
    for (int k = 0; k < g.ncolumn && ok; wide += column[k++].width)
      ok = svg_column_draw(f, &column[k], wide);
    fputs("</svg>\n", f);
  }
  for (int k = 0; k < g.ncolumn && column != NULL; k++) svg_column_free(&column[k]);
  for (int v = nnode; v < g.nnode; v++) free((void *)(uintptr_t)g.node[v].title);
  free(column);
  svg_graph_free(&g);
  return ok;
}
