// Lines over logarithmic axes, as SVG. Needs tools/svg.h above it.

#include <math.h>

typedef struct svg_line {
  const char *name;
  int n;
  const double *x, *y;      // positive
} svg_line;

static void svg_plot(FILE *f, const char *title, const char *x_name, int nline,
                     const svg_line *line) {
  const double left = 70, width = 620, top = 50, height = 420;
  double low[2] = {1e300, 1e300}, high[2] = {1e-300, 1e-300};
  for (int k = 0; k < nline; k++) {
    for (int i = 0; i < line[k].n; i++) {
      const double at[2] = {line[k].x[i], line[k].y[i]};
      for (int d = 0; d < 2; d++) {
        if (at[d] < low[d]) low[d] = at[d];
        if (at[d] > high[d]) high[d] = at[d];
      }
    }
  }
  for (int d = 0; d < 2; d++)
    if (!(high[d] > low[d])) high[d] = low[d] * 2;
  const double wide = width / log(high[0] / low[0]), tall = height / log(high[1] / low[1]);
  svg_head(f, left + width + 420, top + height + 60 + (nline > 28 ? 15.0 * (nline - 28) : 0));
  fprintf(f, "<text x=\"%.0f\" y=\"24\" font-size=\"14\">", left);
  svg_text(f, title, strlen(title));
  fprintf(f, "</text>\n<text x=\"%.0f\" y=\"%.0f\">%s</text>\n", left + width / 2,
          top + height + 40, x_name);
  for (double t = pow(10, floor(log10(low[1]))); t <= high[1]; t *= 10) {
    if (t < low[1]) continue;
    double y = top + height - tall * log(t / low[1]);
    fprintf(f, "<path d=\"M%.0f %.1fh%.0f\" stroke=\"#ddd\"/>\n<text x=\"8\" y=\"%.1f\">%.0e"
            "</text>\n", left, y, width, y + 4, t);
  }
  for (double t = low[0]; t <= high[0] * 1.001; t *= 2) {
    double x = left + wide * log(t / low[0]);
    fprintf(f, "<path d=\"M%.1f %.0fv%.0f\" stroke=\"#eee\"/><text x=\"%.1f\" y=\"%.0f\" "
            "text-anchor=\"middle\">%.0f</text>\n", x, top, height, x, top + height + 18, t);
  }
  for (int k = 0; k < nline; k++) {
    int hue = k * 360 / (nline > 0 ? nline : 1);
    fprintf(f, "<polyline fill=\"none\" stroke-width=\"1.5\" stroke=\"hsl(%d,70%%,45%%)\" "
            "points=\"", hue);
    for (int i = 0; i < line[k].n; i++)
      fprintf(f, "%.1f,%.1f ", left + wide * log(line[k].x[i] / low[0]),
              top + height - tall * log(line[k].y[i] / low[1]));
    fprintf(f, "\"/>\n<text x=\"%.0f\" y=\"%d\" fill=\"hsl(%d,70%%,35%%)\">", left + width + 12,
            60 + 15 * k, hue);
    svg_text(f, line[k].name, strlen(line[k].name));
    fputs("</text>\n", f);
  }
  fputs("</svg>\n", f);
}
