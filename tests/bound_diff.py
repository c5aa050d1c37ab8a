#!/usr/bin/env python3
"""Differential test of I/O bounds against a solver of its own, on scipy.

  bound_diff.py EINSUM [-n COUNT] [--seed N]

One program of COUNT random statements, for several fast memories. What `einsum bound --json` says
of intensity is compared with chi(X) / (X - S) at X0 and at other X, where it must not be less.
chi(X) is found by SLSQP and TNC, whichever does better, on the logarithms of sides, for the price
that X has there. Exits 0 when all agree to 1e-6 (which is what they find), 1 otherwise, and 77
(skipped) without scipy.
"""
import argparse
import json
import math
import random
import subprocess
import sys

try:
    import numpy as np
    from scipy.optimize import minimize
except ImportError:
    print("bound_diff: SKIPPED, scipy is not installed")
    sys.exit(77)


def statement(r, number):
    n = r.randint(1, 5)
    index = [f"i{k}" for k in range(n)]
    extent = [r.choice([1, 2, 3, 7, 20, 100, 1000, 5000]) for _ in index]
    nfree = r.randint(0, n)
    ops = []
    while not ops or {i for o in ops for i in o} != set(range(n)):
        ops = [r.sample(range(n), r.randint(0, min(n, 3))) for _ in range(r.randint(1, 4))]
    def access(name, op):
        return f"{name}[" + ",".join(index[k] for k in op) + "]"
    lines = []
    for k, o in enumerate(ops):
        lines.append(f"input T{number}_{k}[" + ",".join(str(extent[i]) for i in o) + "] : f64")
    body = "*".join(access(f"T{number}_{k}", o) for k, o in enumerate(ops))
    if nfree < n:
        body = "sum[" + ",".join(f"{index[k]}={extent[k]}" for k in range(nfree, n)) + f"]({body})"
    left = "[" + ",".join(f"{index[k]}={extent[k]}" for k in range(nfree)) + "]" if nfree else ""
    lines.append(f"Y{number}{left} = {body}")
    sets = [set(o) for o in ops] + ([set(range(nfree))] if nfree < n else [])
    return "\n".join(lines), extent, [[float(i in s) for i in range(n)] for s in sets]


class Problem:
    """Of boxes that touch the sum over rows a of exp(a . z) elements, z the logarithms of sides."""

    def __init__(self, rows, cap):
        self.a = np.array(rows)
        self.bounds = [(0, None if cap is None else c) for c in cap or self.a[0]]

    def at(self, mu):
        """Where d elements / d log points is mu: elements, and log of the most points of them."""
        def value(z):
            t = np.exp(np.minimum(self.a @ z - math.log(mu), 50))
            return t.sum() - z.sum(), self.a.T @ t - 1
        start = np.minimum(math.log(mu + 1) / len(self.bounds),
                           [math.inf if b[1] is None else b[1] for b in self.bounds])
        how = (("SLSQP", {"maxiter": 1000, "ftol": 1e-16}),
               ("TNC", {"maxfun": 5000, "ftol": 1e-16, "gtol": 1e-10}))
        runs = [minimize(value, start, jac=True, method=m, bounds=self.bounds, options=o)
                for m, o in how]
        got = min(runs, key=lambda g: g.fun if math.isfinite(g.fun) else math.inf)
        return float(np.exp(self.a @ got.x).sum()), float(got.x.sum())

    def difference(self, s, rho, x0, most):
        """How far rho is from the points per element at X0, and from the least of others."""
        if x0 is None:                       # the limit
            x, v = self.at(1e13 * s)
            error = abs(v - math.log(x - s) - math.log(rho))
        elif x0 >= most * (1 - 1e-9):        # the whole
            error = abs(sum(b[1] for b in self.bounds) - math.log(most - s) - math.log(rho))
        elif x0 <= len(self.a) * (1 + 1e-9):  # a point
            error = abs(-math.log(x0 - s) - math.log(rho))
        else:
            x, v = self.at(x0 - s)
            error = max(abs(math.log(x / x0)) / 100, abs(v - math.log(x - s) - math.log(rho)))
        for k in range(-4, 12):
            x, v = self.at(s * 3.0 ** k)
            if x > s:
                error = max(error, math.log(rho) - (v - math.log(x - s)))
        return error


def main():
    p = argparse.ArgumentParser()
    p.add_argument("einsum")
    p.add_argument("-n", type=int, default=500)
    p.add_argument("--seed", type=int, default=1)
    o = p.parse_args()
    r = random.Random(o.seed)
    made = [statement(r, k) for k in range(o.n)]
    program = "\n".join(m[0] for m in made) + "\n"
    failed = done = 0
    worst = 0.0
    for turn, s in enumerate((16, 300, 20000)):
        got = subprocess.run([o.einsum, "bound", "-", "--fast-memory", str(s), "--json"],
                             input=program, capture_output=True, text=True, check=False)
        if got.returncode != 0:
            print("bound_diff:", got.stderr)
            return 1
        for k, x in enumerate(json.loads(got.stdout)):
            if k % 3 != turn:
                continue
            _, extent, rows = made[k]
            for name in ("paper", "capped"):
                cap = None if name == "paper" else [math.log(e) for e in extent]
                most = math.inf if cap is None else float(np.exp(np.array(rows) @ cap).sum())
                got = x[name]
                if cap is not None and most <= s:
                    error = 0 if got["rho"] is None else math.inf
                elif got["rho"] is None:
                    error = math.inf
                else:
                    error = Problem(rows, cap).difference(s, got["rho"], got["x0"], most)
                done += 1
                worst = max(worst, error)
                if error > 1e-6:
                    failed += 1
                    print(f"bound_diff: S={s} {name} differs by {error}: {got}\n{made[k][0]}")
    print(f"bound_diff: seed {o.seed}, {done} intensities of {o.n} statements, {failed} differ, "
          f"largest difference {worst:.2g}")
    return failed != 0


sys.exit(main())
