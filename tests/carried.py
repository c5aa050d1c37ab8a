#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Is what `einsum plan -p N --json` prints enough to do the same elsewhere? tests/carried.py BINARY,
# in a directory to write to. From that JSON and the values of inputs alone, every statement is
# computed here with plain loops, in the blocks and at the places that its rule gives: outputs must
# be those of `einsum run`, transfers and partial results those that JSON says. Needs no package.

import itertools
import json
import math
import random
import re
import struct
import subprocess
import sys

TEXT = {"f64": "d", "f32": "f", "i64": "q", "i32": "i", "bool": "?"}
DESCR = {"f64": "<f8", "f32": "<f4", "i64": "<i8", "i32": "<i4", "bool": "|b1"}
FUNCTIONS = {f: getattr(math, f) for f in ("exp", "log", "sqrt", "sin", "cos", "tanh", "floor",
                                          "erf")}
FUNCTIONS.update({"max": max, "min": min, "abs": abs, "where": lambda c, a, b: a if c else b,
                  "mod": lambda a, b: a % b, "rsqrt": lambda x: 1 / math.sqrt(x),
                  "relu": lambda x: max(x, 0), "inf": math.inf, "pi": math.pi, "true": True,
                  "false": False, "__builtins__": {}})
for name in DESCR:
    FUNCTIONS["cast_" + name] = int if name[0] == "i" else bool if name == "bool" else float


def merge_var(a, b):
    n, d = a[0] + b[0], b[1] - a[1]
    return n, a[1] + d * b[0] / n, a[2] + b[2] + d * d * a[0] * b[0] / n


def merge_log(a, b):
    m = max(a[0], b[0])
    return m, a[1] * math.exp(a[0] - m) + b[1] * math.exp(b[0] - m)


# Of a fold: the state of one value at a position, two states into one, the result; scalars that a
# partial result has.
FOLDS = {
    "sum": (lambda x, at: x, lambda a, b: a + b, lambda s: s, 1),
    "prod": (lambda x, at: x, lambda a, b: a * b, lambda s: s, 1),
    "max": (lambda x, at: x, max, lambda s: s, 1),
    "min": (lambda x, at: x, min, lambda s: s, 1),
    "mean": (lambda x, at: (1, x), lambda a, b: (a[0] + b[0], a[1] + b[1]), lambda s: s[1] / s[0],
             1),
    "var": (lambda x, at: (1, x, 0.0), merge_var, lambda s: s[2] / s[0], 3),
    "argmax": (lambda x, at: (-x, at), min, lambda s: s[1], 2),
    "argmin": (lambda x, at: (x, at), min, lambda s: s[1], 2),
    "logsumexp": (lambda x, at: (x, 1.0), merge_log, lambda s: s[0] + math.log(s[1]), 1),
}


def store(x, dtype):
    return int(x) if dtype[0] == "i" else struct.unpack(TEXT[dtype], struct.pack(TEXT[dtype], x))[0]


def box(ranges):
    return itertools.product(*[range(a, b) for a, b in ranges])


def point(coords, at):
    return tuple(c["offset"] + sum(v * at[i] for i, v in c["coef"].items()) for c in coords)


def hull(coords, ranges):
    ends = [[c["offset"] + sum(v * (ranges[i][0] if (v > 0) == low else ranges[i][1] - 1)
                               for i, v in c["coef"].items()) for low in (True, False)]
            for c in coords]
    return [(a, b + 1) for a, b in ends]


# Every task: its place, the ranges of its indices, and whether its reduced pieces are all 0.
def tasks(extent, parts, order, reduced):
    for pieces in box([(0, parts[i]) for i in order]):
        place, ranges = 0, {i: (0, n) for i, n in extent.items()}
        for i, q in zip(order, pieces):
            place = place * parts[i] + q
            ranges[i] = (q * extent[i] // parts[i], (q + 1) * extent[i] // parts[i])
        yield place, ranges, all(q == 0 for i, q in zip(order, pieces) if i in reduced)


class Carried:
    def __init__(self, plan, values):
        self.plan, self.value, self.home = plan, dict(values), {}
        self.moved, self.params = {}, {n: p["value"] for n, p in plan["params"].items()}
        for name, t in plan["tensors"].items():
            self.home[name] = {}
            if not t["pin"]:
                continue
            axes = dict(enumerate(t["shape"]))
            for place, ranges, _ in tasks(axes, dict(enumerate(t["pin"]["parts"])),
                                          t["pin"]["order"], []):
                for at in box(ranges.values()):
                    self.home[name][at] = None, place
        for number, s in enumerate(plan["statements"]):
            self.statement(number, s)

    # What a task fetches: of the box that it reads, what does not lie at its place.
    def fetch(self, number, s, place, ranges):
        for k, name in enumerate(s["operands"]):
            if (name, s["reads"][k]) in list(zip(s["operands"], s["reads"]))[:k]:
                continue  # it was fetched for that operand
            size = struct.calcsize(TEXT[self.plan["tensors"][name]["dtype"]])
            for at in box(hull(s["reads"][k], ranges)):
                source, home = self.home[name].get(at, (None, place))
                if home != place:
                    key = number, k, source
                    self.moved[key] = self.moved.get(key, 0) + size

    def statement(self, number, s):
        code = compile(re.sub(r"\$(\d+)", r"_operand[\1]", s["map"]).replace("^", "**"),
                       s["out"], "eval")
        one, merge, finish, scalars = FOLDS[s["fold"] or "sum"]
        state, homes, partials, extent = {}, {}, 0, s["indices"]
        t = self.plan["tensors"][s["out"]]
        for place, ranges, first in tasks(extent, s["parts"], s["order"], s["reduced"]):
            assert 0 <= place < self.plan["p"]
            self.fetch(number, s, place, ranges)
            block = {}
            for index in box(ranges[i] for i in extent):
                at, position = dict(zip(extent, index)), 0
                for i in s["reduced"]:
                    position = position * extent[i] + at[i]
                read = [self.value[x][point(m, at)] for x, m in zip(s["operands"], s["reads"])]
                x = one(eval(code, FUNCTIONS, {**self.params, **at, "_operand": read}), position)
                where = point(s["writes"], at)
                block[where] = merge(block[where], x) if where in block else x
            for where, x in block.items():
                state[where] = merge(state[where], x) if where in state else x
            if first:
                homes.update((where, (number, place)) for where in block)
            else:
                partials += len(block) * scalars * struct.calcsize(TEXT[s["dtype"]])
        assert set(homes) == set(state)
        assert all(x < n for at in state for x, n in zip(at, t["shape"]))
        self.home[s["out"]].update(homes)
        out = self.value.setdefault(s["out"], {})
        assert not set(out) & set(state)  # pieces are disjoint
        out.update((at, store(finish(x), t["dtype"])) for at, x in state.items())
        if s["partials"] != partials:
            raise AssertionError("%s: partials %s, not %s" % (s["out"], s["partials"], partials))


def write_npy(path, shape, dtype, values):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (
        DESCR[dtype], "".join("%d, " % n for n in shape))
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        f.write(b"".join(struct.pack("<" + TEXT[dtype], x) for x in values))


def flat(x):
    return [z for y in x for z in flat(y)] if isinstance(x, list) else [x]


def run(*words):
    r = subprocess.run(words, capture_output=True, text=True, check=False)
    if r.returncode != 0:
        raise AssertionError("status %d: %s" % (r.returncode, r.stderr))
    return json.loads(r.stdout)


def check(binary, text, words):
    with open("carried.ein", "w", encoding="utf-8") as f:
        f.write(text)
    plan = run(binary, "plan", "carried.ein", "--json", *words)
    rng, values, files = random.Random(1), {}, []
    for name, t in plan["tensors"].items():
        points = list(box([(0, n) for n in t["shape"]]))
        if t["role"] != "input":
            continue
        values[name] = {at: store(rng.randrange(-9, 9) if t["dtype"][0] == "i" else
                                  rng.uniform(-1, 1), t["dtype"]) for at in points}
        write_npy(name + ".npy", t["shape"], t["dtype"], [values[name][at] for at in points])
        files.append("%s=%s.npy" % (name, name))
    outputs = [n for n, t in plan["tensors"].items() if t["role"] == "output"]
    run(binary, "run", "carried.ein", "--json", *files,
        *[word for n in outputs for word in ("-o", "%s=out_%s.npy" % (n, n))])
    want = {n: run(binary, "--json", "--", "...", "out_%s.npy" % n) for n in outputs}
    got = Carried(plan, values)
    for name, w in want.items():
        t = plan["tensors"][name]
        assert (t["role"], t["dtype"], t["shape"]) == ("output", w["dtype"], w["shape"]), name
        have = [got.value[name][at] for at in box([(0, n) for n in t["shape"]])]
        close = 1e-5 if t["dtype"] == "f32" else 1e-12
        for a, b in zip(have, flat(w["data"])):
            if not (a == b or abs(a - b) <= close * (1 + abs(b))):
                raise AssertionError("%s: %r, not %r" % (name, a, b))
        assert len(have) == len(flat(w["data"])), name
    moved = {(t["statement"], t["operand"], t["from"]): t["bytes"] for t in plan["transfers"]}
    if moved != got.moved:
        raise AssertionError("transfers %s, not %s" % (moved, got.moved))
    return max(s["tasks"] for s in plan["statements"]), sum(moved.values()), \
        sum(s["partials"] for s in plan["statements"])


PROGRAMS = {
    "chain": ("""input A[i=7,j=5], B[j,k=6], C[k,l=4] : f64
D[i,l] = A[i,j]*B[j,k]*C[k,l]
E[i,k] = A[i,j]*B[j,k]
F[i,l] : f32 = 2*(E[i,k]*C[k,l]) - D[i,l]^2
output E, F""", ["--parts", "E[j=3,i=2]"]),
    "attention": ("""input Q[s=6,d=4], K[s,d], V[s,d] : f64
param scale = 0.5
P[i,j] = softmax[j](where(j <= i, scale*sum[k](Q[i,k]*K[j,k]), -1e3))
Y[i,k] = P[i,j]*V[j,k]""", ["--parts", "Y[j=3,k=2]", "--pin", "V[0=3]"]),
    "convolution": ("""input X[9,8], K[3,2] : f32
Y[h,w] = X[2*h+r, 3*w+1-s]*K[r,s]
Z[h,w] = relu(Y[h,w] + Y[3-h,w])""", ["--parts", "Y[h=2,r=3]"]),
    "pieces": ("""input X[n=5], W[m=3] : f64
B[i=n] = (X[i-1 | wrap] + X[i+1 | 0])/2 - X[i-2 | clamp]
C[i] = W[i]
C[i+3] = B[i]
M[2*i] = C[i]
M[2*i+1] = C[7-i] + i
R[3*i+j] = X[i]*W[j]
S[i=5,j=3] = R[3*i+2-j]
S[i,j+3] = B[i]*W[2-j]
output M, C, S""", ["--parts", "M[i=3]", "--parts", "R[i=5]"]),
    "statistics": ("""input X[a=5,b=9] : f64
M[i] = mean[j](X[i,j])
V[i] = var[j](X[i,j])
L = logsumexp[i,j](X[i,j])
A = argmax[i,j](X[i,j])
N[j] = argmin[i](X[i,j])
T[i,j] = layernorm[j](X[i,j], 2, 1)
G[i] = max[j](X[i,j]) - min[j](X[i,j]) + prod[j](X[i,j])
output M, V, L, A, N, T, G""", ["--parts", "M[j=4]", "--parts", "V[j=3]", "--parts", "L[i=2,j=2]",
                                "--parts", "A[i=2,j=3]", "--parts", "N[i=4]"]),
    "broadcast": ("""input X[3,6], r[1,6], c[3], q[3,3] : f64
Y[i,j] = X[i,j] + r[0,j]*c[i] - X[2-i,5-j]
D[i] = q[i,i] - size(Y,1)
I[i,j] : i64 = where(Y[i,j] < 0, -i, j)
output Y, D, I""", ["--pin", "X[0=3]"]),
    "gradient": ("""input X[n=9], K[3], Z[7] : f64
Y[h] = X[2*h+r]*K[r]
L = sum[h](Y[h]^2) + sum[h](exp(Z[3*h]))
grad L wrt X, K, Z as dX, dK, dZ
output dX, dK, dZ""", []),
}


def main():
    failed = 0
    for name, (text, parts) in PROGRAMS.items():
        seen = [0, 0, 0]
        for words in (["-p", "5", "--decomp", "sqrt"], ["-p", "4", "--cost", "paper"],
                      ["-p", "6", "--cost", "bytes"], ["-p", "6", "--decomp", "given"] + parts):
            try:
                seen = list(map(max, seen, check(sys.argv[1], text, words)))
            except (AssertionError, LookupError, ArithmeticError) as e:
                print("carried.py: %s %s: %s: %s" % (name, " ".join(words), type(e).__name__, e))
                failed = 1
        if min(seen[:2]) == 0 or seen[0] == 1:
            print("carried.py: %s is not cut, or nothing moves: %s" % (name, seen))
            failed = 1
    return failed


sys.exit(main())
