// Pictures of plans for the command: graphs in layers, and time lines. Plain SVG 1.1 text.
//
// svg_plan draws nodes as boxes with lines of text, in layers from top to bottom; an edge goes down
// through the layers between its ends, so that it crosses no box. Layers by longest path, the
// order within a layer by the mean place of a node's neighbours (Sugiyama's method). Above it,
// where there is one, the time line: a row per place and a bar per task.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct svg_node {
  const char *title;
  const char *text;         // further lines, separated by '\n'; may be NULL
  int kind;                 // 0: input, 1: statement, 2: output
} svg_node;

typedef struct svg_edge {
  int from, to;             // nodes; from < to
  const char *text;         // beside the arrow; may be NULL
  double weight;            // 0 .. 1: how thick
} svg_edge;

typedef struct svg_bar {
  int64_t row;
  double from, to;          // seconds
  int color;
  const char *text;
} svg_bar;

enum { SVG_CHAR = 7, SVG_LINE = 15, SVG_GAP = 24, SVG_RISE = 46, SVG_MARGIN = 24 };

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
  double want;
  int near;                 // neighbours counted in `want`
} svg_spot;

typedef struct svg_layout {
  int nspot, nlevel, nlink;
  svg_spot *spot;
  int (*link)[2];           // from a layer to the next
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
static void svg_levels(int nnode, int nedge, const svg_edge *edge, int *level) {
  for (int e = 0; e < nedge; e++)  // edges come in the order of their ends
    if (level[edge[e].to] < level[edge[e].from] + 1) level[edge[e].to] = level[edge[e].from] + 1;
  for (int v = 0; v < nnode; v++) {
    int least = -1, fed = 0;
    for (int e = 0; e < nedge; e++) {
      fed |= edge[e].to == v;
      if (edge[e].from == v && (least < 0 || level[edge[e].to] - 1 < least))
        least = level[edge[e].to] - 1;
    }
    if (!fed && least > 0) level[v] = least;
  }
}

static int svg_spots(svg_layout *w, int nnode, const svg_node *node, int nedge,
                     const svg_edge *edge) {
  int *level = (int *)svg_alloc((size_t)nnode, sizeof *level);
  w->first = (int *)svg_alloc((size_t)nedge, sizeof *w->first);
  w->passes = (int *)svg_alloc((size_t)nedge, sizeof *w->passes);
  if (level == NULL || w->first == NULL || w->passes == NULL) return free(level), 0;
  svg_levels(nnode, nedge, edge, level);
  w->nspot = nnode, w->nlink = nedge;
  for (int e = 0; e < nedge; e++) {
    w->first[e] = w->nspot;
    w->passes[e] = level[edge[e].to] - level[edge[e].from] - 1;
    w->nspot += w->passes[e], w->nlink += w->passes[e];
  }
  w->spot = (svg_spot *)svg_alloc((size_t)w->nspot, sizeof *w->spot);
  w->link = (int(*)[2])svg_alloc((size_t)w->nlink, sizeof *w->link);
  if (w->spot == NULL || w->link == NULL) return free(level), 0;
  for (int v = 0; v < nnode; v++) {
    int columns = svg_columns(node[v].title), more = svg_columns(node[v].text);
    svg_spot *s = &w->spot[v];
    s->node = v, s->level = level[v];
    s->width = (more > columns ? more : columns) * SVG_CHAR + 16;
    s->height = (1 + svg_lines(node[v].text)) * SVG_LINE + 8;
    if (s->level + 1 > w->nlevel) w->nlevel = s->level + 1;
  }
  for (int e = 0, l = 0; e < nedge; e++) {
    int at = edge[e].from;
    for (int k = 0; k < w->passes[e]; k++) {
      svg_spot *s = &w->spot[w->first[e] + k];
      s->node = -1, s->level = w->spot[edge[e].from].level + 1 + k, s->width = 10;
      w->link[l][0] = at, w->link[l++][1] = at = w->first[e] + k;
    }
    w->link[l][0] = at, w->link[l++][1] = edge[e].to;
  }
  free(level);
  return 1;
}

static const svg_spot *svg_sorted;  // of the layer being ordered; the command has one thread

static int svg_before(const void *a, const void *b) {
  const svg_spot *x = &svg_sorted[*(const int *)a], *y = &svg_sorted[*(const int *)b];
  if (x->want != y->want) return x->want < y->want ? -1 : 1;
  return x->rank - y->rank;
}

// Where the neighbours above (1), below (2) or on both sides (3) of a spot are, on average.
static void svg_wishes(svg_layout *w, int sides, int ranks) {
  for (int i = 0; i < w->nspot; i++) w->spot[i].want = 0, w->spot[i].near = 0;
  for (int l = 0; l < w->nlink; l++) {
    for (int down = 0; down < 2; down++) {
      svg_spot *to = &w->spot[w->link[l][down]], *from = &w->spot[w->link[l][!down]];
      if ((sides & (down ? 1 : 2)) == 0) continue;
      to->want += ranks ? from->rank : from->x;
      to->near++;
    }
  }
  for (int i = 0; i < w->nspot; i++) {
    svg_spot *s = &w->spot[i];
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
  svg_sorted = w->spot;
  for (int turn = 0; turn < 12; turn++) {
    int down = turn % 2 == 0;
    for (int k = 0; k < w->nlevel; k++) {
      int level = down ? k : w->nlevel - 1 - k;
      svg_wishes(w, down ? 1 : 2, 1);
      qsort(w->order + w->start[level], (size_t)(w->start[level + 1] - w->start[level]),
            sizeof *w->order, svg_before);
      for (int i = w->start[level]; i < w->start[level + 1]; i++)
        w->spot[w->order[i]].rank = i - w->start[level];
      if (w->nspot > 4000 && k % 8 != 0) continue;  // wishes once in a while are enough then
    }
  }
  return 1;
}

static double svg_apart(const svg_spot *a, const svg_spot *b) {
  return (a->width + b->width) / 2 + SVG_GAP;
}

// Moves spots towards their neighbours in turn; the order of a layer stays.
static double svg_place(svg_layout *w) {
  double least = 0, most = 0;
  for (int k = 0; k < w->nlevel; k++) {
    for (int i = w->start[k]; i < w->start[k + 1]; i++) {
      svg_spot *s = &w->spot[w->order[i]];
      s->x = i > w->start[k] ? w->spot[w->order[i - 1]].x + svg_apart(&w->spot[w->order[i - 1]], s)
                             : 0;
    }
  }
  for (int turn = 0; turn < 40; turn++) {
    svg_wishes(w, turn < 20 ? 1 + turn % 2 : 3, 0);
    for (int k = 0; k < w->nlevel; k++) {
      int from = w->start[k], to = w->start[k + 1];
      for (int i = from; i < to; i++) {  // as far right as the left neighbour asks
        svg_spot *s = &w->spot[w->order[i]];
        double x = s->want;
        if (i > from) {
          double low = w->spot[w->order[i - 1]].x + svg_apart(&w->spot[w->order[i - 1]], s);
          if (x < low) x = low;
        }
        s->x = x;
      }
      for (int i = to - 2; i >= from; i--) {  // half of that shift back
        svg_spot *s = &w->spot[w->order[i]], *r = &w->spot[w->order[i + 1]];
        double high = r->x - svg_apart(s, r), x = (s->x + s->want) / 2;
        s->x = x < high ? x : high;
      }
    }
  }
  for (int i = 0; i < w->nspot; i++) {
    double a = w->spot[i].x - w->spot[i].width / 2, b = w->spot[i].x + w->spot[i].width / 2;
    if (i == 0 || a < least) least = a;
    if (i == 0 || b > most) most = b;
  }
  for (int i = 0; i < w->nspot; i++) w->spot[i].x += SVG_MARGIN - least;
  return most - least + 2 * SVG_MARGIN;
}

static void svg_boxes(FILE *f, const svg_layout *w, int nnode, const svg_node *node,
                      const double *top) {
  static const char *const fill[] = {"#eef2f7", "#fff7df", "#e3f4e3"};
  for (int v = 0; v < nnode; v++) {
    const svg_spot *s = &w->spot[v];
    double x = s->x - s->width / 2, y = top[s->level];
    const char *t = node[v].text;
    fprintf(f, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"4\" fill=\"%s\" "
            "stroke=\"#556\"/>\n<text x=\"%.1f\" y=\"%.1f\" font-weight=\"bold\">",
            x, y, s->width, s->height, fill[node[v].kind % 3], x + 8, y + SVG_LINE);
    svg_text(f, node[v].title, strlen(node[v].title));
    fputs("</text>\n", f);
    for (int line = 2; t != NULL && *t != 0; line++) {
      size_t n = strcspn(t, "\n");
      fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" fill=\"#333\">", x + 8, y + line * SVG_LINE);
      svg_text(f, t, n);
      fputs("</text>\n", f);
      t += n + (t[n] == '\n');
    }
  }
}

static void svg_edges(FILE *f, const svg_layout *w, int nedge, const svg_edge *edge,
                      const double *top, const double *bottom) {
  for (int e = 0; e < nedge; e++) {
    const svg_spot *a = &w->spot[edge[e].from], *b = &w->spot[edge[e].to];
    double x = a->x, y = top[a->level] + a->height;
    fprintf(f, "<path d=\"M%.1f %.1f", x, y);
    for (int k = 0; k <= w->passes[e]; k++) {
      const svg_spot *s = k < w->passes[e] ? &w->spot[w->first[e] + k] : b;
      double to = top[s->level], middle = (y + to) / 2;
      fprintf(f, "C%.1f %.1f %.1f %.1f %.1f %.1f", x, middle, s->x, middle, s->x, to);
      x = s->x, y = s == b ? to : bottom[s->level];
      if (s != b) fprintf(f, "L%.1f %.1f", x, y);
    }
    fprintf(f, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"%.1f\" marker-end=\"url(#a)\"/>\n",
            edge[e].weight > 0 ? "#c0392b" : "#99a", 1 + 4 * edge[e].weight);
    if (edge[e].text == NULL || edge[e].text[0] == 0) continue;
    // near the start: edges that meet at a box often come from different ones
    const svg_spot *next = w->passes[e] > 0 ? &w->spot[w->first[e]] : b;
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"10\" fill=\"#822\" stroke=\"#fff\" "
            "stroke-width=\"3\" paint-order=\"stroke\">",
            a->x + (next->x - a->x) / 4 + 5, top[a->level] + a->height + 13 + 11 * (e % 2));
    svg_text(f, edge[e].text, strlen(edge[e].text));
    fputs("</text>\n", f);
  }
}

// ---- time lines, and the page

enum { SVG_ROWS = 64, SVG_ROW = 20, SVG_TIME_LEFT = 80, SVG_TIME_WIDTH = 1200 };

typedef struct svg_time {
  int64_t nrow, nbar;       // rows beyond SVG_ROWS are left out, and it says so
  const svg_bar *bar;       // in any order
  double seconds;           // of the whole
} svg_time;

static void svg_scale(FILE *f, double y, double seconds) {
  double step = 1e-12;
  while (seconds / step > 10) step *= seconds / step > 20 ? (seconds / step > 50 ? 10 : 5) : 2;
  for (double t = 0; t <= seconds * 1.0001; t += step) {
    double x = SVG_TIME_LEFT + SVG_TIME_WIDTH * t / seconds;
    fprintf(f, "<path d=\"M%.1f %.1fv6\" stroke=\"#556\"/><text x=\"%.1f\" y=\"%.1f\" "
            "font-size=\"10\" text-anchor=\"middle\">%.3g s</text>\n", x, y, x, y + 18, t);
  }
}

static double svg_time_height(const svg_time *t) {
  return t == NULL ? 0 : (double)(t->nrow < SVG_ROWS ? t->nrow : SVG_ROWS) * SVG_ROW + 60;
}

static void svg_timeline(FILE *f, const svg_time *t, double top) {
  const int64_t shown = t->nrow < SVG_ROWS ? t->nrow : SVG_ROWS;
  const double seconds = t->seconds > 0 ? t->seconds : 1;
  if (shown < t->nrow)
    fprintf(f, "<text x=\"%d\" y=\"%.0f\">places 0 to %d of %lld</text>\n", SVG_TIME_LEFT,
            top - 4, SVG_ROWS - 1, (long long)t->nrow);
  for (int64_t r = 0; r < shown; r++)
    fprintf(f, "<text x=\"8\" y=\"%.1f\" font-size=\"10\">place %lld</text>\n",
            top + SVG_ROW * (double)r + 14, (long long)r);
  for (int64_t i = 0; i < t->nbar; i++) {
    const svg_bar *b = &t->bar[i];
    if (b->row >= shown) continue;
    double x = SVG_TIME_LEFT + SVG_TIME_WIDTH * b->from / seconds;
    double wide = SVG_TIME_WIDTH * (b->to - b->from) / seconds;
    double y = top + SVG_ROW * (double)b->row;
    fprintf(f, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\" fill=\"hsl(%d,60%%,"
            "75%%)\" stroke=\"#555\" stroke-width=\"0.3\"><title>", x, y, wide > 0.3 ? wide : 0.3,
            SVG_ROW - 2, b->color * 47 % 360);
    svg_text(f, b->text, strlen(b->text));
    fprintf(f, ": %.3g to %.3g s</title></rect>\n", b->from, b->to);
    if (wide < (double)strlen(b->text) * 6 + 4) continue;
    fprintf(f, "<text x=\"%.2f\" y=\"%.1f\" font-size=\"10\">", x + 3, y + 13);
    svg_text(f, b->text, strlen(b->text));
    fputs("</text>\n", f);
  }
  svg_scale(f, top + SVG_ROW * (double)shown, seconds);
}

// Draws a graph, its nodes in an order in which edges go forward, and a time line (may be NULL);
// 0: out of memory.
static int svg_plan(FILE *f, const char *title, int nnode, const svg_node *node, int nedge,
                    const svg_edge *edge, const svg_time *time) {
  svg_layout w;
  memset(&w, 0, sizeof w);
  double *top = NULL, *bottom = NULL;
  int ok = svg_spots(&w, nnode, node, nedge, edge) && svg_order(&w);
  if (ok) {
    top = (double *)svg_alloc((size_t)w.nlevel + 1, sizeof *top);
    bottom = (double *)svg_alloc((size_t)w.nlevel + 1, sizeof *bottom);
    ok = top != NULL && bottom != NULL;
  }
  if (ok) {
    const double head = SVG_MARGIN + 2 * SVG_LINE;
    double width = svg_place(&w), y = head + svg_time_height(time);
    double least = svg_columns(title) * (SVG_CHAR + 2) + 2 * SVG_MARGIN;
    if (time != NULL && width < SVG_TIME_LEFT + SVG_TIME_WIDTH + 2 * SVG_MARGIN)
      width = SVG_TIME_LEFT + SVG_TIME_WIDTH + 2 * SVG_MARGIN;
    for (int k = 0; k < w.nlevel; k++) {
      double height = 0;
      for (int i = w.start[k]; i < w.start[k + 1]; i++)
        if (w.spot[w.order[i]].height > height) height = w.spot[w.order[i]].height;
      top[k] = y, bottom[k] = y + height, y += height + SVG_RISE;
    }
    svg_head(f, width > least ? width : least, y);
    fputs("<defs><marker id=\"a\" markerWidth=\"8\" markerHeight=\"8\" refX=\"7\" refY=\"4\" "
          "orient=\"auto\" markerUnits=\"userSpaceOnUse\"><path d=\"M0 0L8 4L0 8z\" "
          "fill=\"#667\"/></marker></defs>\n", f);
    fprintf(f, "<text x=\"%d\" y=\"%d\" font-size=\"14\">", SVG_MARGIN, SVG_MARGIN + 4);
    svg_text(f, title, strlen(title));
    fputs("</text>\n", f);
    if (time != NULL) svg_timeline(f, time, head);
    svg_edges(f, &w, nedge, edge, top, bottom);
    svg_boxes(f, &w, nnode, node, top);
    fputs("</svg>\n", f);
  }
  free(top), free(bottom), free(w.spot), free(w.link), free(w.first), free(w.passes);
  free(w.order), free(w.start);
  return ok;
}
