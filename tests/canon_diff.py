#!/usr/bin/env python3
"""Normal forms against BLISS, an independent canoniser of graphs, by way of igraph.

  canon_diff.py [-n COUNT] [--seed N] [--case N] [--rows N] EINSUM

Draws batched einsums, each in two spellings and with one detail changed; makes the induced graph of
each as Kulkarni and Kloeckner 2025 define it, and holds that `EINSUM canon` prints one text for two
programs exactly when BLISS finds one canonical graph. Prints one summary line; exits 0 when
everything agrees, 1 otherwise, and 77 (skipped) when igraph is missing.
"""
import argparse
import random
import subprocess
import sys

try:
    import igraph
except ImportError:
    print("canon_diff: SKIPPED, igraph is not installed")
    sys.exit(77)

DTYPES = ["f32", "f64", "c64"]


class Batch:
    """extent of each index, indices of the result and of each operand, dtype of each operand,
    arguments of each row. An argument is a number, its shape and dtype those of its operand."""

    def __init__(self, extent, out, operand, dtype, rows):
        self.extent, self.out, self.operand = extent, out, operand
        self.dtype, self.rows = dtype, rows

    def kind(self, k):
        return tuple(self.extent[i] for i in self.operand[k]), self.dtype[k]

    def kinds(self):
        return {arg: self.kind(k) for row in self.rows for k, arg in enumerate(row)}

    def copy(self):
        return Batch(list(self.extent), list(self.out), [list(o) for o in self.operand],
                     list(self.dtype), [list(r) for r in self.rows])


def draw(rng, most):
    while True:
        nindex = rng.randint(1, 6)
        extent = [rng.choice([2, 2, 3, 5]) for _ in range(nindex)]
        operand = [[rng.randrange(nindex) for _ in range(rng.choice([0, 1, 1, 2, 2, 3]))]
                   for _ in range(rng.randint(1, 4))]
        used = sorted(set(i for o in operand for i in o))
        if len(used) == nindex:
            break
    # A product of three that is partly in f32 rounds there: its order is no mere spelling.
    dtype = [rng.choice(DTYPES) for _ in operand]
    dtype = dtype if len(dtype) < 3 else dtype[:1] * len(dtype)
    out = rng.sample(used, rng.randint(0, len(used)))
    b = Batch(extent, out, operand, dtype, [])
    kinds = sorted(set(b.kind(k) for k in range(len(operand))))
    nrow = rng.randint(10, most)
    pool = rng.choice([2, 5, nrow // 4 + 1, nrow, 4 * nrow])
    ring = rng.random() < 0.4  # rows that are alike: arguments in circles
    step = [rng.randint(1, pool) for _ in operand]
    shift = [rng.randrange(pool) for _ in operand]
    for r in range(nrow):
        pick = [(r * step[k] + shift[k]) % pool if ring else rng.randrange(pool)
                for k in range(len(operand))]
        b.rows.append([kinds.index(b.kind(k)) * pool + pick[k] for k in range(len(operand))])
    return b


def change(rng, b):
    """One detail is another; it may be that this is no difference."""
    c, where = b.copy(), rng.randrange(5)
    k = rng.randrange(len(c.operand))
    like = [j for j in range(len(c.operand)) if c.kind(j) == c.kind(k)]
    same = [arg for arg, kind in c.kinds().items() if kind == c.kind(k)]
    row = rng.choice(c.rows)
    if where == 0:
        row[k] = rng.choice(same)
    elif where == 1:
        j = rng.choice(like)
        row[j], row[k] = row[k], row[j]
    elif where == 2:
        other = rng.choice(c.rows)
        row[k], other[k] = other[k], row[k]
    elif where == 3 and len(c.out) > 1:
        i, j = rng.sample(range(len(c.out)), 2)
        c.out[i], c.out[j] = c.out[j], c.out[i]
    elif c.operand[k]:
        d = rng.randrange(len(c.operand[k]))
        to = [i for i, e in enumerate(c.extent) if e == c.extent[c.operand[k][d]]]
        was, c.operand[k][d] = c.operand[k][d], rng.choice(to)
        if all(was not in o for o in c.operand):
            return b
    return c


def shuffled(rng, n):
    v = list(range(n))
    rng.shuffle(v)
    return v


def spell(rng, b):
    """The batch as a program: names and orders of everything by chance."""
    index, names = shuffled(rng, len(b.extent)), b.kinds()
    args = dict(zip(names, shuffled(rng, len(names))))
    order = shuffled(rng, len(b.operand))
    lines = ["input T%d[%s] : %s" % (args[a], ",".join(map(str, shape)), dtype)
             for a, (shape, dtype) in names.items()]
    rng.shuffle(lines)

    def access(name, indices):
        return name + ("[" + ",".join("x%d" % index[i] for i in indices) + "]" if indices else "")
    for r, row in enumerate(shuffled(rng, len(b.rows))):
        factors = [access("T%d" % args[b.rows[row][k]], b.operand[k]) for k in order]
        lines.append(access("R%d" % r, b.out) + " = " + "*".join(factors))
    lines.append("output " + ", ".join("R%d" % r for r in shuffled(rng, len(b.rows))))
    return "\n".join(lines) + "\n"


def induced(b):
    """Colours and edges. What is in a total order has a colour for each rank."""
    colour, edges, number = [], [], {}

    def node(key, kind):
        if key not in number:
            number[key] = len(colour)
            colour.append(kind)
        return number[key]
    for arg, (_, dtype) in b.kinds().items():
        edges.append((node(("dtype", dtype), (7, DTYPES.index(dtype))), node(("arg", arg), (1, 0))))
    for i, extent in enumerate(b.extent):
        edges.append((node(("length", extent), (8, extent)), node(("index", i), (2, 0))))
    for d, i in enumerate(b.out):
        access = node(("out", i, d), (4, 0))
        edges += [(node(("index", i), (2, 0)), access), (node(("dim", d), (9, d)), access)]
    for r, row in enumerate(b.rows):
        for k, arg in enumerate(row):
            uses = [("in", r, k, i, d) for d, i in enumerate(b.operand[k])]
            for use in uses or [("none", r, k)]:
                access = node(use, (3 if uses else 10, 0))
                edges += [(access, node(("arg", arg), (1, 0))),
                          (node(("position", k), (6, 0)), access),
                          (node(("row", r), (5, 0)), access)]
                if uses:
                    edges += [(node(("index", use[3]), (2, 0)), access),
                              (node(("dim", use[4]), (9, use[4])), access)]
    return colour, edges


def canonical(graph, colours):
    """The graph as BLISS orders it. Arcs need no direction: their ends are of two colours."""
    colour, edges = graph
    g = igraph.Graph(n=len(colour), edges=edges)
    order = g.canonical_permutation(color=[colours[c] for c in colour])
    if [colour[v] for v in order] != sorted(colour):  # igraph before 1.0 gives the places
        order = sorted(range(len(order)), key=order.__getitem__)
    at, place = [colour[v] for v in order], [None] * len(order)
    if at != sorted(colour):
        raise RuntimeError("BLISS orders vertices by colour, this does not")
    for n, v in enumerate(order):
        place[v] = n
    return at, sorted(tuple(sorted((place[x], place[y]))) for x, y in edges)


def isomorphic(a, b):
    x, y = induced(a), induced(b)
    if sorted(x[0]) != sorted(y[0]) or len(x[1]) != len(y[1]):
        return False
    colours = {c: n for n, c in enumerate(sorted(set(x[0])))}
    return canonical(x, colours) == canonical(y, colours)


def form(command, text):
    p = subprocess.run([command, "canon", "-"], input=text.encode(), stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE)
    if p.returncode != 0:
        raise RuntimeError(p.stderr.decode())
    return p.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("einsum")
    args = parser.parse_args()
    bad = pairs = alike = rows = 0
    for case in range(args.n) if args.case is None else [args.case]:
        rng = random.Random("%d %d" % (args.seed, case))
        a = draw(rng, rng.choice([10, 40, args.rows]))
        for _ in range(20):  # most changes of a row are only another order of rows
            b = change(rng, a)
            if b.out != a.out or b.operand != a.operand or sorted(b.rows) != sorted(a.rows):
                break
        rows = max(rows, len(a.rows))
        text = [spell(rng, a), spell(rng, a), spell(rng, b), spell(rng, b)]
        forms = [form(args.einsum, t) for t in text]
        same = isomorphic(a, b)
        alike += same
        for i, j, expect in ((0, 1, True), (2, 3, True), (0, 2, same), (1, 3, same)):
            pairs += 1
            if (forms[i] == forms[j]) != expect:
                bad += 1
                print("case %d: forms %d and %d are %s, but the graphs are %s" % (
                    case, i, j, "one" if not expect else "two", "one" if expect else "two"))
    print("canon_diff: %s, %d pairs of up to %d rows, %d of %d changes made no difference, seed %d"
          % ("FAIL" if bad else "ok", pairs, rows, alike, args.n, args.seed))
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
