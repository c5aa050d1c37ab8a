#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# Do the error bounds of plans hold, and are they those that theory gives? tests/accuracy.py BINARY,
# in a directory to write to. Results are compared with exact sums of the same operands. No package.

import itertools
import json
import math
import random
import struct
import subprocess
import sys
from fractions import Fraction

UNIT = {"f16": 2.0**-11, "f32": 2.0**-24, "f64": 2.0**-53}
TEXT = {"f16": "e", "f32": "f", "f64": "d"}
failed = 0


def fail(*what):
    global failed
    print("accuracy.py:", *what)
    failed = 1


def run(*words):
    r = subprocess.run([sys.argv[1], *words, "--json"], capture_output=True, text=True,
                       check=False)
    if r.returncode != 0:
        fail(words, r.stderr)
        sys.exit(1)
    return json.loads(r.stdout)


def rounded(x, dtype):
    return struct.unpack(TEXT[dtype], struct.pack(TEXT[dtype], x))[0]


def write_npy(path, shape, dtype, values):
    head = "{'descr': '<f%d', 'fortran_order': False, 'shape': (%s), }" % (
        struct.calcsize(TEXT[dtype]), "".join("%d, " % n for n in shape))
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        f.write(struct.pack("<%d%s" % (len(values), TEXT[dtype]), *values))


def flat(x):
    return [z for y in x for z in flat(y)] if isinstance(x, list) else [x]


# The definition in fractions: the sums of products, and of their absolute values.
def exact(expr, shapes, values):
    ins, out = expr.split("->")
    terms = ins.split(",")
    extent = {c: n for t, s in zip(terms, shapes) for c, n in zip(t, s)}
    labels = list(extent)
    total, size = {}, {}
    for point in itertools.product(*[range(extent[c]) for c in labels]):
        at, product = dict(zip(labels, point)), Fraction(1)
        for t, s, v in zip(terms, shapes, values):
            k = 0
            for c, n in zip(t, s):
                k = k * n + at[c]
            product *= Fraction(v[k])
        key = tuple(at[c] for c in out)
        total[key] = total.get(key, 0) + product
        size[key] = size.get(key, 0) + abs(product)
    return [total[k] for k in sorted(total)], [size[k] for k in sorted(size)]


def bound_of(plan):
    s = plan["statements"][-1]
    return s["error_bound"], s["error_from"], s["accumulates"]


def hold(rng):
    worst = 0.0
    for expr, shapes, dtype in (("i,i->", [(6000,), (6000,)], "f32"),
                                ("ij,jk->ik", [(5, 301), (301, 4)], "f32"),
                                ("ij,jk->ik", [(5, 301), (301, 4)], "f16"),
                                ("ij,jk,kl->il", [(4, 40), (40, 30), (30, 3)], "f32"),
                                ("ij,ij->ij", [(9, 9), (9, 9)], "f16"),
                                ("ij->j", [(900, 3)], "f64"),
                                ("ij,jk,kl->il", [(3, 20), (20, 20), (20, 3)], "f64")):
        values, files = [], []
        for k, s in enumerate(shapes):
            v = [rounded(rng.choice((1, -1)) * rng.uniform(0.5, 2) * 10**rng.uniform(-1, 1), dtype)
                 for _ in range(math.prod(s))]
            values.append(v)
            files.append("acc%d.npy" % k)
            write_npy(files[-1], s, dtype, v)
        want, size = exact(expr, shapes, values)
        for how in ([], ["--kernels", "portable"], ["-p", "4"], ["--deterministic"],
                    ["-p", "3", "--decomp", "sqrt"]):
            shown = ",".join("x".join(map(str, s)) for s in shapes)
            plan = run("plan", expr, "--shapes", shown, "--dtype", dtype, *how)
            bound, start, sums = bound_of(plan)
            got = [rounded(x, dtype) for x in flat(run(expr, *files, *how)["data"])]
            if start != "inputs" or sums not in (None, "f32" if dtype == "f16" else dtype):
                fail(expr, dtype, how, "counts from", start, "and adds in", sums)
            for g, w, s in zip(got, want, size):
                error = abs(Fraction(g) - w) / s if s else 0
                if error > bound:
                    fail(expr, dtype, how, "error", float(error), "bound", bound)
                worst = max(worst, float(error / Fraction(bound)))
    if worst < 0.02:
        fail("no error comes near its bound: only to", worst)


# A bound says how many roundings a value went through.
def theory():
    u, h = UNIT["f32"], UNIT["f16"]

    def times(unit, n):
        return math.expm1(n * math.log1p(unit))

    one = ["--sizes", "i=3,j=400,k=2", "--dtype"]
    for words, want in ((["ij,jk->ik", *one, "f32"], times(u, 400)),
                        (["ij,jk->ik", *one, "f64"], times(UNIT["f64"], 400)),
                        (["ij,jk->ik", *one, "f16"], (1 + times(u, 400)) * (1 + h) - 1),
                        (["ij,jk->ik", *one, "i32"], 0), (["ij->ji", "--shapes", "3x4"], 0),
                        (["ij,jk,kl->il", "--sizes", "i=3,j=50,k=40,l=2", "--dtype", "f32",
                          "--path", "(0,1) (0,1)", "--kernels", "portable"], times(u, 90)),
                        (["--fabric", "sim", "ij,jk->ik", *one, "f32"], times(u, 400))):
        bound = bound_of(run("plan", *words))[0]
        if not math.isclose(bound, want, rel_tol=1e-9, abs_tol=1e-30):
            fail(words, bound, "not", want)
    text = """input X[n=100], W[n], B[n] : f32
M = mean[i](X[i])
D = sum[i]((X[i] - B[i])^2)
Q[i] = X[i] / W[i]
R[i] = X[i] / (W[i] + B[i])
E = sum[i](exp(X[i]))
F = sum[i](Q[i] * W[i])
output M, D, Q, R, E, F"""
    with open("acc.ein", "w", encoding="utf-8") as f:
        f.write(text)
    with open("acc_far.ein", "w", encoding="utf-8") as f:
        f.write("input X[n=100] : f32\nY[i] = exp(X[i])\nZ = sum[i](Y[i]*Y[i])\noutput Y, Z")
    for how in (["--kernels", "portable"], ["-p", "2", "--decomp", "none"]):
        got = {s["out"]: s["error_bound"] for s in run("plan", "acc.ein", *how)["statements"]}
        want = {"M": times(u, 100), "D": (1 + u)**3 * (1 + u)**99 - 1, "Q": u, "R": None,
                "F": times(u, 101)}
        for name, x in want.items():
            if (x is None) != (got[name] is None) or \
                    (x is not None and not math.isclose(got[name], x, rel_tol=1e-5)):
                fail(how, name, got[name], "not", x)
        if got["E"] is not None:
            fail(how, "E has a bound", got["E"])
        z = run("plan", "acc_far.ein", *how)["statements"][-1]
        if (z["out"], z["error_from"]) != ("Z", "operands") or \
                not math.isclose(z["error_bound"], times(u, 100), rel_tol=1e-5):
            fail(how, z)


# Slices of a fold are merged: as many additions as in one.
def slices():
    with open("acc.ein", "w", encoding="utf-8") as f:
        f.write("input X[n=3000], Y[n] : f32\nT[i,j] = X[i]*Y[j]\nZ = sum[i,j](exp(0*T[i,j]))\n"
                "S = sum[i,j](T[i,j])\noutput Z, S\n")
    plan = run("plan", "acc.ein", "--memory", "600K", "--kernels", "portable")
    s = [x for x in plan["statements"] if x["out"] == "S"][-1]
    if plan["slices"] < 2 or not s["error_bound"] >= math.expm1(3000 * 3000 * math.log1p(2.0**-24)):
        fail("sliced", plan["slices"], s["error_bound"])


# What no provider takes is counted, and why is said.
def fallbacks():
    with open("acc.ein", "w", encoding="utf-8") as f:
        f.write("input Z[n=40] : c64\ninput X[n] : f32\nW[i] = Z[i]/Z[0]\nV[i] = exp(X[i])\n"
                "output W, V\n")
    plan = run("plan", "acc.ein")
    slow = {s["out"]: s["fallback"] for s in plan["statements"]}
    facts = subprocess.run([sys.argv[1], "info"], capture_output=True, text=True, check=True)
    vectors = "instruction set: avx" in facts.stdout
    if plan["fallbacks"] != sum(x is not None for x in slow.values()):
        fail("fallbacks", plan["fallbacks"], slow)
    if vectors and (slow["W"] is None or "c64" not in slow["W"] or slow["V"] is not None):
        fail("fallbacks", slow)
    told = subprocess.run([sys.argv[1], "plan", "acc.ein", "--explain", "-q"], capture_output=True,
                          text=True, check=True).stderr
    if "fallbacks: %d statement" % plan["fallbacks"] not in told or \
            told.count("fallback: portable kernels, ") != plan["fallbacks"]:
        fail("--explain does not tell of fallbacks:", told)
    plan = run("plan", "acc.ein", "--kernels", "portable")
    if plan["fallbacks"] != 0:
        fail("portable kernels that were asked for are no fallback")


hold(random.Random(7))
theory()
slices()
fallbacks()
sys.exit(failed)
