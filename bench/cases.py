"""The case files of bench/cases and random operands for them."""
import copy
import fnmatch
import math
import os
import random
import re
import zlib

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
DTYPES = {"f32": np.float32, "f64": np.float64}
KEYS = {"flops", "dtype", "fields", "map", "fold", "prog", "py", "peak", "written"}


class Case:
    """One line of a case file: name | group | expression | extents | key=value | .."""

    def __init__(self, line, as_written=False):
        parts = [p.strip() for p in line.split(" | ")]
        self.name, self.group, self.expr = parts[:3]
        self.ext = {k: int(v) for k, v in (e.split("=") for e in parts[3].split(","))}
        opt = dict(p.split("=", 1) for p in parts[4:])
        unknown = set(opt) - KEYS
        if unknown:
            raise ValueError("unknown key %s" % ", ".join(sorted(unknown)))
        if as_written and "written" in opt:
            self.expr = opt["written"]
        self.flops = int(opt["flops"])
        self.dtypes = opt.get("dtype", "f64,f32").split(",")
        self.fields = int(opt.get("fields", "1"))
        self.map, self.fold = opt.get("map", ""), opt.get("fold", "")
        self.prog, self.py = opt.get("prog", "").replace("; ", "\n"), opt.get("py", "")
        self.peak = opt.get("peak", "fma")
        left, self.out = self.expr.split("->")
        self.ins = left.split(",")
        self.shapes = [tuple(self.ext[x] for x in s) for s in self.ins]
        self.out_shape = tuple(self.ext[x] for x in self.out)
        self.reduced = [x for x in dict.fromkeys(left.replace(",", "")) if x not in self.out]
        self.length = math.prod(self.ext[x] for x in self.reduced)
        self.base = None

    def functional(self):
        """The same contraction of a1*A+b1 and a2*B+b2, scalars known when it runs."""
        other = copy.copy(self)
        reads = ["x%d[%s]" % (k, ",".join(x)) for k, x in enumerate(self.ins)]
        fold = "sum[%s]" % ",".join(self.reduced) if self.reduced else ""
        other.prog = "input %s\nparam a1=1.25, b1=0.5, a2=0.75, b2=0.25\n" % ", ".join(reads)
        other.prog += "Y[%s] = %s((a1*%s + b1)*(a2*%s + b2))\noutput Y" % (
            ",".join(self.out), fold, *reads)
        other.py = "einsum('%s', 1.25*x0 + 0.5, 0.75*x1 + 0.25)" % self.expr
        other.base = self
        return other

    def rows(self):
        """The fields as rows of one program: inputs that they share, the last of each, results."""
        names = ["x%d[%s]" % (k, ",".join(x)) for k, x in enumerate(self.ins)]
        last, n = ",".join(self.ins[-1]), len(self.ins) - 1
        ins = names[:-1] + ["x%d[%s]" % (n + f, last) for f in range(self.fields)]
        lines = ["input " + ", ".join(ins)]
        for f in range(self.fields):
            lines.append("Y%d[%s] = sum[%s](%s)" % (f, ",".join(self.out), ",".join(self.reduced),
                                                    "*".join(names[:-1] + [ins[n + f]])))
        return "\n".join(lines + ["output " + ", ".join("Y%d" % f for f in range(self.fields))])

    def changed(self, swap, rename):
        """The same contraction with operands exchanged, with other letters."""
        other = copy.copy(self)
        order = [1, 0] if swap else [0, 1]
        other.ins = ["".join(rename.get(x, x) for x in self.ins[i]) for i in order]
        other.out = "".join(rename.get(x, x) for x in self.out)
        other.shapes = [self.shapes[i] for i in order]
        other.expr = ",".join(other.ins) + "->" + other.out
        return other

    @property
    def plain(self):
        """A sum of products, what einsum functions compute."""
        return not (self.map or self.fold or self.prog)

    def traffic(self, dtype):
        """Bytes read and bytes written when every array is touched once."""
        size = DTYPES[dtype]().itemsize
        read = sum(math.prod(s) for s in self.shapes[:-1])
        read += self.fields * math.prod(self.shapes[-1])
        return read * size, self.fields * math.prod(self.out_shape) * size


def random_cases(count=40, seed=7):
    """Contractions of two operands with one to three indices of each kind, axes in any order."""
    rng = random.Random(seed)
    found = []
    while len(found) < count:
        kinds = [rng.choice((0, 0, 1))] + [rng.randint(1, 3) for _ in range(3)]
        letters = rng.sample("abcdefghij", sum(kinds))
        b, m, n, k = (letters[sum(kinds[:i]):sum(kinds[:i + 1])] for i in range(4))
        ext = {x: int(2 ** rng.uniform(1, 8)) for x in letters}
        operands = [rng.sample(x, len(x)) for x in (b + m + k, b + k + n, b + m + n)]
        sizes = [math.prod(ext[x] for x in o) for o in operands]
        flops = 2 * math.prod(ext.values())
        if max(sizes) > 1 << 24 or not 1e7 < flops < 4e9:
            continue
        found.append(Case("random%02d | random | %s,%s->%s | %s | flops=%d" % (
            len(found) + 1, *["".join(o) for o in operands],
            ",".join("%s=%d" % e for e in ext.items()), flops)))
    return found


def dg_cases(elements=100000):
    """The operators of DG-FEM on tetrahedra, orders 1 to 4, for 1, 5 and 20 fields that share the
    geometry; flops by the best order of pairs."""
    found = []
    for op, expr in (("facemass", "fe,ifj,fej->ei"), ("grad", "xre,rij,ej->xei"),
                     ("div", "xre,rij,xej->ei")):
        for i, face in ((4, 3), (10, 6), (20, 10), (35, 15)):
            j = face if op == "facemass" else i
            ext = "f=4" if op == "facemass" else "x=3,r=3"
            flops = elements * (4 * j + 8 * i * j if op == "facemass" else 6 * i * j + 18 * i)
            for b in (1, 5, 20):
                found.append(Case("dg_%s_i%d_j%d_b%d | dg | %s | %s,e=%d,i=%d,j=%d | flops=%d | "
                                  "dtype=f64 | fields=%d" % (op, i, j, b, expr, ext, elements, i, j,
                                                             b * flops, b)))
    return found


def load(name, as_written=False):
    """The cases of bench/cases/NAME.txt, or made up: random, dg, dg:ELEMENTS."""
    if name == "random":
        return random_cases()
    if name.split(":")[0] == "dg":
        return dg_cases(*map(int, name.split(":")[1:]))
    found = []
    path = os.path.join(HERE, "cases", name + ".txt")
    with open(path, encoding="ascii") as f:
        for number, line in enumerate(f, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            try:
                found.append(Case(line, as_written))
            except (ValueError, KeyError, IndexError) as e:
                raise SystemExit("%s:%d: %s" % (path, number, e))
    names = [c.name for c in found]
    if len(set(names)) != len(names):
        raise SystemExit("%s: a name occurs twice" % path)
    return found


def select(cases, patterns):
    """Cases whose name or group matches one of the comma-separated patterns."""
    pats = patterns.split(",")
    return [c for c in cases if any(fnmatch.fnmatch(c.name, p) or c.group == p for p in pats)]


def buffer(shape, dtype, number, offset):
    """An array offset bytes behind a line; arrays start in different sets of the caches."""
    t = np.dtype(DTYPES[dtype])
    raw = np.zeros(math.prod(shape) * t.itemsize + 16384 + offset, np.uint8)
    start = -raw.ctypes.data % 4096 + number % 16 * 320 + offset
    return raw[start:start + math.prod(shape) * t.itemsize].view(t).reshape(shape)


class Operands:
    """Inputs in [-1, 1) from the seed and the case's name, and outputs. The fields of a case differ
    in their last operand and their output."""

    def __init__(self, case, dtype, seed, offset):
        rng = np.random.default_rng([seed, zlib.crc32(case.name.encode())])
        shapes = case.shapes + [case.shapes[-1]] * (case.fields - 1)
        arrays = []
        for k, s in enumerate(shapes):
            a = buffer(s, dtype, k, offset)
            self.fill(rng, a)
            arrays.append(a)
        n = len(case.shapes)
        self.sets = [arrays[:n - 1] + [arrays[n - 1 + f]] for f in range(case.fields)]
        self.outs = [buffer(case.out_shape, dtype, len(shapes) + f, offset)
                     for f in range(case.fields)]

    @staticmethod
    def fill(rng, a):
        flat = a.reshape(-1)
        step = 1 << 22
        for i in range(0, flat.size, step):
            part = flat[i:i + step]
            part[:] = rng.random(part.size, dtype=a.dtype.type)
            part *= 2
            part -= 1


class Untouched:
    """Operands for planning only: memory that is never written."""

    def __init__(self, case, dtype):
        self.sets = [[np.empty(s, DTYPES[dtype]) for s in case.shapes]]
        self.outs = [np.empty(case.out_shape, DTYPES[dtype])]


def aligned(case, arrays, xp=np):
    """The operands of an element-wise map with axes in one common order, ready to broadcast."""
    order = list(case.out) + case.reduced
    views = []
    for labels, a in zip(case.ins, arrays):
        a = xp.transpose(a, [labels.index(x) for x in order if x in labels]) if a.ndim > 1 else a
        views.append(a[tuple(slice(None) if x in labels else None for x in order)])
    return views


def python_map(text):
    """A map as Python: the same but for powers and the names of functions that clash."""
    return re.sub(r"\b(max|min|abs)\(", r"\1_(", text.replace("^", "**"))


def numpy_names():
    def softmax(x):
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)
    return {"einsum": lambda text, *x: np.einsum(text, *x, optimize=True),
            "max_": np.maximum, "min_": np.minimum, "abs_": np.abs, "exp": np.exp,
            "relu": lambda x: np.maximum(x, 0), "softmax": softmax}


def evaluate(case, arrays, names):
    values = {"x%d" % k: a for k, a in enumerate(arrays)}
    return eval(case.py or python_map(case.map) or "x0", dict(names), values)


FOLDS = {"": np.add, "sum": np.add, "min": np.minimum, "max": np.maximum}


def reference(case, arrays):
    """The result in f64, by NumPy."""
    wide = [np.asarray(a, np.float64) for a in arrays]
    if case.plain:
        return np.einsum(case.expr, *wide, optimize=len(wide) > 1)
    if case.py:
        return evaluate(case, wide, numpy_names())
    views = aligned(case, wide)
    if not case.reduced:
        return evaluate(case, views, numpy_names())
    if len(views) == 1:
        return FOLDS[case.fold].reduce(views[0], axis=tuple(range(len(case.out), views[0].ndim)))
    if len(case.reduced) != 1:
        raise ValueError("no reference for folds of maps over several indices")
    result = None
    for k in range(case.ext[case.reduced[0]]):
        part = evaluate(case, [v[..., min(k, v.shape[-1] - 1)] for v in views], numpy_names())
        result = part if result is None else FOLDS[case.fold](result, part, out=result)
    return result


def tolerance(case, dtype, expected):
    """Rounding errors of a sum of n terms grow as sqrt(n), relative to its typical size."""
    eps = np.finfo(DTYPES[dtype]).eps
    n = 1 if case.fold in ("min", "max") else case.length
    typical = math.sqrt(n) * 3 ** (-len(case.ins) / 2)
    largest = float(np.max(np.abs(expected))) if expected.size else 0.0
    return eps * (16 + 4 * math.sqrt(n)) * max(largest, typical)


def deviation(got, expected):
    """The largest error, taken in pieces; inf when something is not a number."""
    g, e = np.asarray(got), np.asarray(expected)
    if g.shape != e.shape:
        return math.inf
    if g.ndim and g.size > 1 << 22:
        return max(deviation(g[i], e[i]) for i in range(len(g)))
    d = float(np.max(np.abs(g - e))) if g.size else 0.0
    return math.inf if math.isnan(d) else d
