#!/usr/bin/env python3
"""Predictions of all ways of a plan, each forced in turn, against what they take.

    python3 bench/ways.py build/einsum 70           products mk,kn->mn, thin, small and long ones
    python3 bench/ways.py build/einsum 100 21       pairs of operands of the set drawn, seed 21

EINSUM_RATES names measured rates (einsum calibrate -j 1 -o FILE). Prints a line for each case: the
time as planned over that of the fastest way, and of each way microseconds and predicted/measured;
then of each way how many there are, the geometric mean, and how many are within a factor of 1.5.
"""
import collections
import math
import random
import re
import subprocess
import sys

import drawn

UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}
PRODUCT_MOST, DRAWN_FLOPS = 3e6, 2e8  # elements, operations: longer ones are left out


def products(count):
    rng = random.Random(5)
    for _ in range(count):
        m = int(math.exp(rng.uniform(math.log(2), math.log(80))))
        k = rng.choice([1, 1, 2, 2, 3, 4, 6, 8, 16, 40])
        n = int(math.exp(rng.uniform(math.log(60), math.log(200000))))
        if rng.random() < .5:
            n = max(8, n // 8 * 8)
        if max(m, k) * n <= PRODUCT_MOST:
            ext = {"m": m, "n": n} if k == 1 else {"m": m, "k": k, "n": n}
            yield "m,n->mn" if k == 1 else "mk,kn->mn", ext


def drawn_pairs(seed, count):
    for c in drawn.cases(seed, count):
        if len(c.ins) == 2 and c.flops <= DRAWN_FLOPS:
            yield c.expr, c.ext


def bench(command, expr, ext, way=None):
    sizes = ",".join("%s=%d" % x for x in ext.items())
    args = [command, "bench", expr, "--sizes", sizes, "-j", "1", "--seconds", "0.05", "--explain"]
    return subprocess.run(args + (["--variant", way] if way else []), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout


def main():
    command, count = sys.argv[1], int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else None
    ratios, regrets = collections.defaultdict(list), []
    for expr, ext in products(count) if seed is None else drawn_pairs(seed, count):
        text = bench(command, expr, ext)
        said = dict(re.findall(r"cpu-([a-z0-9 ]+?) ([\d.e+-]+) s", text))
        chosen = re.search(r"predicted: cpu-([a-z0-9 ]+?) [\d.]", text)
        took = {}
        for way in said:
            m = re.search(r"median\s+([\d.e+]+) (\w+) of", bench(command, expr, ext, way))
            if m:
                took[way] = float(m[1]) * UNITS[m[2]]
        if chosen is None or chosen[1] not in took:
            continue
        regrets.append(took[chosen[1]] / min(took.values()))
        for way in took:
            ratios[way].append(float(said[way]) / took[way])
        print("%s %s: %s, %.2f of the fastest; %s" % (
            expr, ",".join("%s=%d" % x for x in ext.items()), chosen[1], regrets[-1],
            ", ".join("%s %.3g us %.2f" % (w, took[w] * 1e6, ratios[w][-1]) for w in took)),
            flush=True)
    for way, r in sorted(ratios.items()):
        print("%-22s %3d, mean %.2f, within 1.5: %.2f" % (
            way, len(r), math.exp(sum(map(math.log, r)) / len(r)),
            sum(1 / 1.5 <= x <= 1.5 for x in r) / len(r)))
    if regrets:
        print("as planned over the fastest: mean %.3f, at most 1.1: %.2f, 2: %.2f, of %d" % (
            math.exp(sum(map(math.log, regrets)) / len(regrets)),
            sum(x <= 1.1 for x in regrets) / len(regrets),
            sum(x <= 2 for x in regrets) / len(regrets), len(regrets)))


if __name__ == "__main__":
    main()
