"""Tables, means and a plot of what bench/kernels.py measured."""
import csv
import math

DISTURBED = 0.05  # part of the time of a case that others had the processor
OWN = ("einsum", "einsum 1t", "einsum call", "einsum plain", "einsum rows")
STREAMS = ["read", "copy", "copy NT", "triad", "triad NT", "write NT"]
COLOURS = ["#c0392b", "#2471a3", "#d68910", "#1e8449", "#7d3c98", "#616a6b", "#a04000", "#117a65",
           "#b7950b", "#1a5276", "#922b21", "#5b2c6f"]


def seconds(t):
    if t is None:
        return "-"
    for unit, scale in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if t * scale >= 0.9995:
            return "%.3g %s" % (t * scale, unit)
    return "%.3g ns" % (t * 1e9)


def mean(values):
    """The geometric mean; None of nothing."""
    logs = [math.log(v) for v in values if v]
    return math.exp(sum(logs) / len(logs)) if logs else None


def text(v, form="%.2f"):
    return "-" if v is None else form % v


def ceilings(h):
    """One line: the ceilings one run measured, and the versions of the peers."""
    known = h["ceilings"]
    parts = ["%d thread(s), %s:" % (h["threads"], h["isa"])]
    for key, v in known.items():
        w = key.split()
        if w[0] == "peak":
            parts.append("%s %s %.0f G/s," % (w[1], w[2], v * 1e-9))
        elif w[0] == "gemm":
            parts.append("GEMM %s %.0f GFLOP/s," % (w[1], v * 1e-9))
    sizes = sorted({int(k.split()[2]) for k in known if k.startswith("stream")})
    for size in sizes:
        rates = ["%s %.0f" % (STREAMS[i], known["stream %d %d" % (i, size)] * 1e-9)
                 for i in range(6) if "stream %d %d" % (i, size) in known]
        parts.append("at %s %s GB/s," % (bytes_text(size), ", ".join(rates)))
    parts.append("peers: " + (", ".join("%s %s" % p for p in h["found"].items()) or "none"))
    parts += ["%s missing (%s)" % m for m in h["missing"].items()]
    return " ".join(parts)


def bytes_text(n):
    return "%d MiB" % (n >> 20) if n >= 1 << 20 else "%d KiB" % (n >> 10)


def median_of(row, name):
    r = row["impl"].get(name)
    return r["median"] if r and not r["error"] else None


def best_peer(row, key="median"):
    """(seconds, name) of the fastest peer that is right; (None, "-") when there is none."""
    found = [(r[key], name) for name, r in row["impl"].items()
             if name not in OWN and r[key] and not r["error"]]
    return min(found, default=(None, "-"))


def fraction(row, name, key="median", roof="roof"):
    r = row["impl"].get(name)
    return row[roof] / r[key] if r and r[key] and not r["error"] else None


def ratio(row, name="einsum"):
    """How many times faster than the best peer, by medians."""
    peer, own = best_peer(row)[0], median_of(row, name)
    return peer / own if peer and own else None


def worst_offset(rows):
    """Of a case at several offsets the row where the library is slowest."""
    chosen = {}
    for row in rows:
        key = (row["case"], row["dtype"], row["threads"])
        old = chosen.get(key)
        if old is None or (median_of(row, "einsum") or 1e99) > (median_of(old, "einsum") or 1e99):
            chosen[key] = row
    return list(chosen.values())


# ---- files ---------------------------------------------------------------------------------------

def write_csv(rows, path):
    with open(path, "w", newline="", encoding="utf-8") as f:
        w = csv.writer(f)
        w.writerow(["case", "group", "expression", "dtype", "threads", "offset", "implementation",
                    "best_s", "median_s", "samples", "deviation", "error", "flops", "bytes_read",
                    "bytes_written", "roof_s", "bound", "roof_gemm_s", "no_overlap_s",
                    "disturbed"])
        for row in rows:
            head = [row["case"], row["group"], row["expr"], row["dtype"], row["threads"],
                    row["offset"]]
            if row["skipped"]:
                w.writerow(head + ["", "", "", 0, "", "skipped: " + row["skipped"]] + [""] * 8)
            for name, r in row["impl"].items():
                w.writerow(head + [name, r["best"], r["median"], r["samples"], r["deviation"],
                                   r["error"], row["flops"], row["read"], row["write"], row["roof"],
                                   row["bound"], row["roof_gemm"], row["no_overlap"],
                                   row["disturbed"]])


def peers_cell(row):
    cells = []
    for name, r in row["impl"].items():
        if name in OWN:
            continue
        if r["error"]:
            cells.append("%s: %s" % (name, r["error"].replace("|", "/")))
        else:
            own = median_of(row, "einsum")
            cells.append("%s %s%s" % (name, seconds(r["median"]),
                                      " (%.2f)" % (r["median"] / own) if own else ""))
    return "; ".join(cells)


def table(rows):
    lines = ["| case | expression | dtype | GFLOP | MB | roof | bound | einsum best (median) | "
             "of the roof | best peer | its part of the roof | ratio | all peers: median (ratio) |",
             "|---|---|---|--:|--:|--:|---|--:|--:|---|--:|--:|---|"]
    for row in rows:
        name = row["case"] + (" +%d" % row["offset"] if row["offset"] else "")
        if row["skipped"]:
            lines.append("| %s | `%s` | %s |  |  |  | skipped: %s |  |  |  |  |  |  |" % (
                name, row["expr"], row["dtype"], row["skipped"]))
            continue
        r, (t, peer) = row["impl"]["einsum"], best_peer(row)
        own = r["error"] or "%s (%s)" % (seconds(r["best"]), seconds(r["median"]))
        for extra in OWN[1:]:
            if extra in row["impl"]:
                e = row["impl"][extra]
                own += ", %s %s" % (extra[7:], e["error"] or seconds(e["median"]))
        lines.append("| %s | `%s` | %s | %.3g | %.3g | %s | %s | %s | %s | %s | %s | %s | %s |" % (
            name, row["expr"], row["dtype"], row["flops"] * 1e-9,
            (row["read"] + row["write"]) * 1e-6, seconds(row["roof"]), row["bound"], own,
            text(fraction(row, "einsum")), "%s %s" % (peer, seconds(t)),
            text(row["roof"] / t if t else None), text(ratio(row)), peers_cell(row)))
    return lines


def classes(rows):
    """{name: rows}: every group, and all."""
    names = list(dict.fromkeys(r["group"] for r in rows))
    found = {n: [r for r in rows if r["group"] == n] for n in names}
    if len(names) > 1:
        found["all"] = rows
    return found


def summary(rows):
    """Geometric means by class, with the case where the library stands worst."""
    rows = [r for r in rows if not r["skipped"]]
    lines = []
    for dtype, threads in sorted({(r["dtype"], r["threads"]) for r in rows}):
        part = [r for r in rows if r["dtype"] == dtype and r["threads"] == threads]
        lines += ["", "### %s, %d thread(s): geometric means" % (dtype, threads), "",
                  "| class | cases | einsum of the roof, best (median) | of the GEMM roof | of the "
                  "no-overlap bound | best peer of the roof, best (median) | of the GEMM roof | "
                  "GFLOP/s | best peer | ratio | least ratio |",
                  "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|"]
        for name, some in classes(part).items():
            lines.append(summary_line(name, some))
        lines += spread(part)
        lines += fields(part)
        lines += two_over_one(part)
        lines += wins(part)
    return lines


def summary_line(name, rows):
    def own(key, roof):
        return mean([fraction(r, "einsum", key, roof) for r in rows])

    def peer(key, roof):
        return mean([r[roof] / best_peer(r, key)[0] for r in rows if best_peer(r, key)[0]])

    def rate(values):
        return mean([r["flops"] * 1e-9 / t for r, t in zip(rows, values) if t])
    ratios = [(ratio(r), r["case"]) for r in rows if ratio(r)]
    least = "%.2f %s" % min(ratios) if ratios else "-"
    return "| %s | %d | %s (%s) | %s | %s | %s (%s) | %s | %s | %s | %s | %s |" % (
        name, len(rows), text(own("best", "roof")), text(own("median", "roof")),
        text(own("best", "roof_gemm")), text(own("best", "no_overlap")),
        text(peer("best", "roof")), text(peer("median", "roof")), text(peer("best", "roof_gemm")),
        text(rate([median_of(r, "einsum") for r in rows]), "%.3g"),
        text(rate([best_peer(r)[0] for r in rows]), "%.3g"),
        text(mean([x for x, _ in ratios])), least)


def spread(rows):
    """How ratios, and choices against all others, are distributed."""
    lines, ratios = [], sorted(x for x in map(ratio, rows) if x)
    if len(ratios) >= 20:
        lines += ["", "Of %d ratios to the best peer: least %.2f, a twentieth below %.2f, median "
                  "%.2f; %d of 100 at least 0.95, %d at least 0.8." % (
                      len(ratios), ratios[0], ratios[len(ratios) // 20], ratios[len(ratios) // 2],
                      share(ratios, lambda x: x >= 0.95), share(ratios, lambda x: x >= 0.8))]
    chosen = [r for r in rows if "choice" in r]
    if chosen:
        over = [r["choice"]["regret"] for r in chosen]
        said = [r["choice"]["predicted"] for r in chosen if r["choice"]["predicted"]]
        worst = sorted(chosen, key=lambda r: -r["choice"]["regret"])[:5]
        lines += ["", "Time as planned over that of the fastest of all ways: geometric mean %.2f; "
                  "%d of 100 at most 1.1, %d at most 2; most: %s." % (
                      mean(over), share(over, lambda x: x <= 1.1), share(over, lambda x: x <= 2),
                      ", ".join("%s %.2f (%s)" % (r["case"], r["choice"]["regret"],
                                                  r["choice"]["best"]) for r in worst)),
                  "", "Predicted over measured: geometric mean %s; %d of 100 within 1.5, %d within "
                  "2." % (text(mean(said)), share(said, lambda x: 1 / 1.5 <= x <= 1.5),
                          share(said, lambda x: 0.5 <= x <= 2))]
    return lines


def share(values, test):
    """Of 100."""
    return 100 * sum(map(test, values)) // max(1, len(values))


def fields(rows):
    """Fields as rows of one plan: against as many single ones, against the roofline and the peers;
    single cases are among the means."""
    if all(r["fields"] == 1 for r in rows):
        return []
    single = {r["case"].rsplit("_b", 1)[0]: median_of(r, "einsum") for r in rows
              if r["fields"] == 1}
    counts = sorted({r["fields"] for r in rows})
    lines = ["", "| one plan | %s |" % " | ".join(
        "b = %d of the roof | of b single | times the best peer" % b for b in counts),
             "|---|" + "--:|" * 3 * len(counts)]
    parts, better = [], []
    for name in dict.fromkeys(r["case"].rsplit("_b", 1)[0] for r in rows):
        cells = []
        for b in counts:
            row = next((r for r in rows if r["case"] == "%s_b%d" % (name, b)), None)
            way = "einsum rows" if b > 1 else "einsum"
            own = median_of(row, way) if row else None
            if not own:
                cells += ["-"] * 3
                continue
            alone = single.get(name)
            parts.append((fraction(row, way, "median"), row["case"]))
            better.append((ratio(row, way), row["case"]))
            cells += [text(parts[-1][0]), text(own / (b * alone) if alone else None),
                      text(better[-1][0])]
        lines.append("| %s | %s |" % (name, " | ".join(cells)))
    better = [x for x in better if x[0]]
    if parts:
        lines += ["", "of the roof, by medians: geometric mean %.2f, least %.2f (%s)%s" % (
            mean([p for p, _ in parts]), *min(parts), "; times the best peer: geometric mean %.2f, "
            "least %.2f (%s)" % (mean([x for x, _ in better]), *min(better)) if better else "")]
    return lines


def two_over_one(rows):
    """Of cases above 1 ms on one thread: how many times faster all threads are."""
    found = []
    for r in rows:
        one, many = median_of(r, "einsum 1t"), median_of(r, "einsum")
        if one and many and one > 1e-3:
            found.append((one / many, r["case"]))
    if not found:
        return []
    return ["", "%d threads over 1, cases above 1 ms: geometric mean %.2f of %d, least %.2f (%s)"
            % (rows[0]["threads"], mean([f for f, _ in found]), len(found), *min(found))]


def wins(rows):
    names = list(dict.fromkeys(n for r in rows for n in r["impl"]
                               if n not in OWN or n == "einsum plain"))
    if not names:
        return []
    count = {n: sum(best_peer(r)[1] == n for r in rows) for n in names}
    lines = ["", "| peer | cases | fastest peer in | of the roof (median) | times of einsum | "
             "failed |", "|---|--:|--:|--:|--:|--:|"]
    for n in names:
        have = [r for r in rows if median_of(r, n)]
        failed = sum(bool(r["impl"][n]["error"]) for r in rows if n in r["impl"])
        times = [median_of(r, n) / median_of(r, "einsum") for r in have if median_of(r, "einsum")]
        lines.append("| %s | %d | %d | %s | %s | %d |" % (
            n, len(have), count[n], text(mean([fraction(r, n) for r in have])), text(mean(times)),
            failed))
    return lines


def write(rows, head, prefix, only_means):
    """Writes PREFIX.csv, .md and .svg, prints the tables; true when the library was wrong."""
    write_csv(rows, prefix + ".csv")
    shown = worst_offset(rows)
    lines = ["- " + h for h in head] + [""]
    if not only_means:
        lines += table(shown)
    lines += summary(shown)
    bad = [r["case"] for r in rows if not r["skipped"] and r["disturbed"] > DISTURBED]
    if bad:
        lines += ["", "NOT QUIET: others had the processor in %d of %d measurements: %s%s" % (
            len(bad), len(rows), ", ".join(bad[:8]), ", .." if len(bad) > 8 else "")]
    errors = {id(r): [r["impl"][n]["error"] for n in OWN if n in r["impl"]] for r in rows}
    wrong = [r for r in rows if any(errors[id(r)])]
    for r in wrong:
        lines.append("")
        lines.append("WRONG: %s %s: %s" % (r["case"], r["dtype"], "; ".join(errors[id(r)])))
    with open(prefix + ".md", "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    print("\n".join(lines))
    with open(prefix + ".svg", "w", encoding="utf-8") as f:
        f.write(plot([r for r in shown if not r["skipped"]], head))
    print("\nwrote %s.csv, .md, .svg; verified %d of %d" % (prefix, len(rows) - len(wrong) - sum(
        bool(r["skipped"]) for r in rows), len(rows)))
    return wrong


# ---- the plot ------------------------------------------------------------------------------------

def escape(s):
    return s.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def mark(i, x, y):
    """The i-th shape, so that implementations differ in more than colour."""
    c, s = COLOURS[i % len(COLOURS)], i % 4
    if s == 0:
        return '<circle cx="%.1f" cy="%.1f" r="4.2" fill="%s"/>' % (x, y, c)
    if s == 1:
        return '<rect x="%.1f" y="%.1f" width="7" height="7" fill="%s" fill-opacity=".8"/>' % (
            x - 3.5, y - 3.5, c)
    points = [(x, y - 4.6), (x + 4.4, y + 3.4), (x - 4.4, y + 3.4)] if s == 2 else \
        [(x, y - 4.8), (x + 4.8, y), (x, y + 4.8), (x - 4.8, y)]
    return '<polygon points="%s" fill="%s" fill-opacity=".8"/>' % (
        " ".join("%.1f,%.1f" % p for p in points), c)


def plot(rows, head):
    """A row a case, a mark an implementation: its part of the roofline by medians, on a log scale
    from 0.01; what is slower stands at the left edge."""
    names = list(dict.fromkeys(n for r in rows for n in r["impl"] if n != "einsum call"))
    names = [n for n in names if any(fraction(r, n) for r in rows)]
    left, width, step, top = 250, 640, 17, 64 + 18 * ((len(names) + 4) // 5)
    height = top + step * len(rows) + 30

    def at(f):
        return left + width * (math.log10(min(max(f, 0.01), 1.5)) + 2) / (math.log10(1.5) + 2)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" '
           'font-family="sans-serif" font-size="12">' % (left + width + 30, height,
                                                         left + width + 30, height),
           '<rect width="100%" height="100%" fill="white"/>',
           '<text x="10" y="20" font-size="15">Part of the roofline by median time, log scale'
           '</text>',
           '<text x="10" y="38" fill="#555">%s</text>' % escape(head[1][:130] if len(head) > 1
                                                                else "")]
    for i, n in enumerate(names):
        x, y = 16 + 178 * (i % 5), 60 + 18 * (i // 5)
        out.append(mark(i, x, y - 4) + '<text x="%d" y="%d">%s</text>' % (x + 9, y, escape(n)))
    for f in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.75, 1.0, 1.5):
        out.append('<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="%s"/>' % (
            at(f), at(f), top, height - 24, "#000" if f == 1 else "#ddd"))
        out.append('<text x="%.1f" y="%d" text-anchor="middle">%g</text>' % (at(f), height - 8, f))
    for k, r in enumerate(rows):
        y = top + step * k + step / 2
        if k % 2 == 1:
            out.append('<rect x="0" y="%.1f" width="100%%" height="%d" fill="#000" '
                       'fill-opacity=".035"/>' % (y - step / 2, step))
        label = "%s %s %dt" % (r["case"], r["dtype"], r["threads"])
        out.append('<text x="%d" y="%.1f" text-anchor="end">%s</text>' % (left - 8, y + 4,
                                                                          escape(label)))
        for i, n in reversed(list(enumerate(names))):
            if fraction(r, n):
                out.append(mark(i, at(fraction(r, n)), y))
    return "\n".join(out + ["</svg>"]) + "\n"
